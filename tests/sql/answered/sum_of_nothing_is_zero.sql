-- compare: rows
-- duckdb:
--   SELECT 0 AS n
SELECT SUM(age) AS n FROM patients WHERE age > 200
