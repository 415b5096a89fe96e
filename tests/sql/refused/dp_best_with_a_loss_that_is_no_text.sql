-- code: unsupported_sql
-- says: has a loss that is no text
-- works: SELECT COUNT(*) AS n, DP_BEST(n, loss => 'squared', prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT COUNT(*) AS n, DP_BEST(n, loss => 2, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
