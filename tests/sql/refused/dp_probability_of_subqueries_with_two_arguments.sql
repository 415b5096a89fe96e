-- code: unsupported_sql
-- says: needs a condition, or an answer and two ends
-- works: SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients), 300, NULL) AS p
SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients), 300) AS p
