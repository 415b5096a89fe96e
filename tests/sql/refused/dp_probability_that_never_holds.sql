-- code: unsupported_sql
-- says: can never hold
-- works: SELECT COUNT(*) AS n, DP_PROBABILITY(n > 3 OR n < 2) FROM patients
SELECT COUNT(*) AS n, DP_PROBABILITY(n > 3 AND n < 2) FROM patients
