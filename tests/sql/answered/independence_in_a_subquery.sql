-- compare: none DuckDB has no such test
-- n_rows: 2
SELECT 'sex' AS tested, p_value, decision FROM (SELECT DP_CHI2_TEST(sex, insured) FROM patients) AS a
UNION ALL
SELECT 'city', p_value, decision FROM (SELECT DP_CHI2_TEST(city, insured) FROM patients) AS b
ORDER BY p_value
