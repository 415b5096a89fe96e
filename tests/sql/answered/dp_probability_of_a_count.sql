-- compare: rows
-- duckdb:
--   SELECT city, COUNT(*) AS n, 0.5 AS p, 0.5 AS q FROM patients GROUP BY city
-- ignore: p, q
SELECT city, COUNT(*) AS n, DP_PROBABILITY(n > 300) AS p, DP_PROBABILITY(n, NULL, 300) AS q FROM patients GROUP BY city
