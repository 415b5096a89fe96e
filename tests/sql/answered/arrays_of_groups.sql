-- compare: none lists come back from DuckDB as objects that are not compared
-- n_rows: 1
SELECT ARRAY_AGG(city ORDER BY city) AS cities FROM (SELECT sex, city FROM patients GROUP BY sex, city HAVING COUNT(*) > 100) AS t
