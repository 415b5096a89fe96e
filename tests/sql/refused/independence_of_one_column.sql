-- code: unsupported_sql
-- says: does not have two columns
-- works: SELECT DP_CHI2_TEST(sex, insured) FROM patients
SELECT DP_CHI2_TEST(sex) FROM patients
