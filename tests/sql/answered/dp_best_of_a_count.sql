-- compare: rows
-- duckdb:
--   SELECT city, COUNT(*) AS n, 1 AS b, 1 AS c FROM patients GROUP BY city
-- ignore: b, c
SELECT city, DP_BEST(n, loss => 'squared', prior => ((200, 0.5), (300, 0.5))) AS b, COUNT(*) AS n, DP_BEST(COUNT(*), loss => 'power', power => 1.5, prior => (SELECT k, w FROM (VALUES (200, 1), (300, 3)) AS t(k, w))) AS c FROM patients GROUP BY city
