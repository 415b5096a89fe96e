-- code: unsupported_sql
-- says: does not name two columns to test
-- works: SELECT DP_CHI2_TEST(sex, insured) FROM patients
SELECT DP_CHI2_TEST(sex) FROM patients
