-- compare: rows
-- duckdb:
--   SELECT 2 AS k, 0.5 AS p
-- ignore: p
SELECT 2 AS k, DP_PROBABILITY((SELECT COUNT(*) FROM patients WHERE sex = 'male') > (SELECT COUNT(*) FROM patients WHERE sex = 'female')) AS p
