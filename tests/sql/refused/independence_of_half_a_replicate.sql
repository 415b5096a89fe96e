-- code: invalid_target
-- says: replicates must be a whole number
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.01) DP_CHI2_TEST(sex, insured) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(replicates => 99.5) DP_CHI2_TEST(sex, insured) FROM patients
