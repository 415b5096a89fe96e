-- code: unknown_name
-- says: city
-- works: SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(n) FROM patients GROUP BY city
SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(city) FROM patients GROUP BY city
