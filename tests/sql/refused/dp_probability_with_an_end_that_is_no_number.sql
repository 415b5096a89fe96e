-- code: unsupported_sql
-- says: has an end that is no number
-- works: SELECT COUNT(*) AS n, DP_PROBABILITY(n, NULL, 3) FROM patients
SELECT COUNT(*) AS n, DP_PROBABILITY(n, 'x', 3) FROM patients
