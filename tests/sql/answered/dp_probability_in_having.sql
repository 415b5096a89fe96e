-- compare: ordered
-- duckdb:
--   SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING COUNT(*) > 1 ORDER BY n DESC, city
SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING DP_PROBABILITY(COUNT(*) > -100000) > 0.99 AND COUNT(*) > 1 ORDER BY n DESC, city
