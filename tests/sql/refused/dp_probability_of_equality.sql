-- code: unsupported_sql
-- says: DP_PROBABILITY(n = 300) has a condition that is no comparison
-- works: SELECT COUNT(*) AS n, DP_PROBABILITY(n BETWEEN 299 AND 301) FROM patients
SELECT COUNT(*) AS n, DP_PROBABILITY(n = 300) FROM patients
