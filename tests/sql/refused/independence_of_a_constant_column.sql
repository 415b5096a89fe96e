-- code: unsupported_sql
-- says: fewer than two values
-- works: SELECT DP_CHI2_TEST(sex, insured) FROM patients
SELECT DP_CHI2_TEST(sex, insured) FROM patients WHERE sex = 'male'
