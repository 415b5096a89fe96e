-- compare: rows
-- duckdb:
--   SELECT age, CASE WHEN n < 20 THEN 0 WHEN n < 40 THEN 1 ELSE 2 END AS b FROM (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) t WHERE ABS(n - 20) > 0.1 AND ABS(n - 40) > 0.1
SELECT age, WIDTH_BUCKET(n, ARRAY[20, 40]) AS b FROM (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) t WHERE ABS(n - 20) > 0.1 AND ABS(n - 40) > 0.1
