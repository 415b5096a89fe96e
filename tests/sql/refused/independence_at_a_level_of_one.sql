-- code: invalid_target
-- says: between 0 and 1
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.01) DP_CHI2_TEST(sex, insured) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 1) DP_CHI2_TEST(sex, insured) FROM patients
