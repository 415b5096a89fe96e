-- compare: rows
-- ignore: low, high
-- interval: n in low, high by city
SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM patients GROUP BY city
