-- code: unsupported_sql
-- says: there is no loss 'cubic'
-- works: SELECT COUNT(*) AS n, DP_BEST(n, loss => 'power', power => 3, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT COUNT(*) AS n, DP_BEST(n, loss => 'cubic', prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
