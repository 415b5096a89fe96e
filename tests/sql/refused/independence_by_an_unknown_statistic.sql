-- code: invalid_target
-- says: statistic => 'pearson' is Pearson's chi-square
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => 'g2') DP_CHI2_TEST(sex, insured) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => 'wald') DP_CHI2_TEST(sex, insured) FROM patients
