-- compare: rows
-- ignore: low, high
-- interval: n in low, high at 0.99 by city
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence => 0.95, simultaneous => 5) city, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM patients GROUP BY city
