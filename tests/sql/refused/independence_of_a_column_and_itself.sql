-- code: unsupported_sql
-- says: no record can have
-- works: SELECT DP_CHI2_TEST(age >= 40, insured) FROM patients
SELECT DP_CHI2_TEST(age >= 40, age >= 60) FROM patients
