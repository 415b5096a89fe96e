-- compare: rows
-- duckdb:
--   SELECT 0.5 AS p
-- ignore: p
SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients WHERE sex = 'male') > (SELECT COUNT(*) FROM patients WHERE sex = 'female')) AS p
