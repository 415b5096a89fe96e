-- code: unsupported_sql
-- says: must sum to 1
-- works: SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.4))) AS b FROM patients
