-- code: unsupported_sql
-- says: DP_PROBABILITY has a condition that is no comparison
-- works: SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients) > 300) AS p
SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients)) AS p
