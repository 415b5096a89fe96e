-- compare: rows
-- ignore: cost, source
SELECT sex, COUNT(*) AS n, DP_COST(n) AS cost, DP_SOURCE(n) AS source FROM patients GROUP BY sex
