-- code: unsupported_sql
-- says: needs a condition, or an answer and two ends
-- works: SELECT COUNT(*) AS n, DP_PROBABILITY(n, 3, NULL) FROM patients
SELECT COUNT(*) AS n, DP_PROBABILITY(n > 2, 3) FROM patients
