-- code: unsupported_sql
-- says: has no prior
-- works: SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT COUNT(*) AS n, DP_BEST(n, loss => 'squared') AS b FROM patients
