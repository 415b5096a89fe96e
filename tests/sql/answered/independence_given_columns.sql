-- compare: none DuckDB has no such test
-- n_rows: 1
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.01, replicates => 199)
       DP_CHI2_TEST(age >= 40, visits > 3, GIVEN => (sex, insured))
FROM patients WHERE city <> 'Oslo' AND sex IS NOT NULL
