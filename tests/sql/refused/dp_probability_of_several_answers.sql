-- code: unsupported_sql
-- says: ties several answers by AND or OR
-- works: SELECT COUNT(*) AS n, SUM(age) AS s, DP_PROBABILITY(n > 3), DP_PROBABILITY(s > 4) FROM patients
SELECT COUNT(*) AS n, SUM(age) AS s, DP_PROBABILITY(n > 3 AND s > 4) FROM patients
