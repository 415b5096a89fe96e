-- code: unsupported_sql
-- says: no list of counts with probabilities
-- works: SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT COUNT(*) AS n, DP_BEST(n, prior => (200, 300)) AS b FROM patients
