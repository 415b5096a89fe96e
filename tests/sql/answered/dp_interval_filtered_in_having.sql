-- compare: rows
-- ignore: low
SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM patients GROUP BY city HAVING COUNT(*) > 350
