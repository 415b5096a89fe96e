-- code: unsupported_sql
-- says: needs one count, and loss, power and prior once each
-- works: SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT COUNT(*) AS n, DP_BEST(n, losses => 'squared', prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
