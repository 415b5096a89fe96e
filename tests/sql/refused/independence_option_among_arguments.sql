-- code: unsupported_sql
-- says: OPTIONS(replicates => 99)
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(replicates => 99) DP_CHI2_TEST(sex, insured) FROM patients
SELECT DP_CHI2_TEST(sex, insured, replicates => 99) FROM patients
