-- code: invalid_target
-- says: Set half_width
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10) DP_CHI2_TEST(sex, insured) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.1) DP_CHI2_TEST(sex, insured) FROM patients
