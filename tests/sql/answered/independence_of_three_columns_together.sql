-- compare: none DuckDB has no such test
-- n_rows: 1
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => 'g2', replicates => 199)
       DP_CHI2_TEST(age >= 40, visits > 3, insured, GIVEN => sex)
FROM patients WHERE sex IS NOT NULL
