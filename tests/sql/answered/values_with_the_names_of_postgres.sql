-- compare: rows
-- duckdb:
--   SELECT 'a' AS k, 1 AS n UNION ALL SELECT NULL, 2
SELECT column2 AS k, column1 AS n FROM (VALUES (1, 'a'), (2, NULL)) AS v
