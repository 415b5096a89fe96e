-- compare: none DuckDB has no such test
-- n_rows: 1
SELECT DP_CHI2_TEST(sex, insured) FROM patients
