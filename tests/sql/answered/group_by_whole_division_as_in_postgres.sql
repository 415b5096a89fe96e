-- compare: rows
-- duckdb:
--   SELECT age // 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1
SELECT age / 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1
