-- code: unsupported_sql
-- says: is part of an expression
-- works: SELECT city, b FROM (SELECT city, DP_BEST(COUNT(*), prior => ((200, 0.5), (300, 0.5))) AS b FROM patients GROUP BY city) AS t WHERE b > 250
SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING DP_BEST(COUNT(*), prior => ((200, 0.5), (300, 0.5))) > 250
