-- compare: none DuckDB has no such test
-- n_rows: 1
SELECT DP_CHI2_TEST(sex, is_capital, GIVEN => insured) FROM patients JOIN cities USING (city)
