-- compare: ordered
-- ignore: low, high
SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM patients GROUP BY city ORDER BY n DESC LIMIT 3
