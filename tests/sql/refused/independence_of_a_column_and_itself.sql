-- code: unsupported_sql
-- says: tests columns some of whose combinations of values are impossible
-- works: SELECT DP_CHI2_TEST(age >= 40, insured) FROM patients
SELECT DP_CHI2_TEST(age >= 40, age >= 60) FROM patients
