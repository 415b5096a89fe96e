-- code: unsupported_sql
-- says: tests a column that has fewer than two possible values under WHERE
-- works: SELECT DP_CHI2_TEST(sex, insured) FROM patients
SELECT DP_CHI2_TEST(sex, insured) FROM patients WHERE sex = 'male'
