-- code: invalid_target
-- says: Ask for 999 or more
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.001, replicates => 1999) DP_CHI2_TEST(sex, insured) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.001, replicates => 500) DP_CHI2_TEST(sex, insured) FROM patients
