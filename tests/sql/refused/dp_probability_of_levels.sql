-- code: unsupported_sql
-- says: is about a value whose law is not known
-- works: SELECT COUNT(*) AS n, DP_PROBABILITY(n > 5) FROM patients
SELECT COUNT(DISTINCT city) AS n, DP_PROBABILITY(n > 5) FROM patients
