-- compare: none DuckDB has no such test
-- n_rows: 0
-- spends: nothing
SELECT DP_CHI2_TEST(sex, insured) FROM patients LIMIT 0
