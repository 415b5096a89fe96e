-- code: unsupported_sql
-- says: is part of an expression
-- works: SELECT city, COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients GROUP BY city ORDER BY b
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY DP_BEST(n, prior => ((200, 0.5), (300, 0.5)))
