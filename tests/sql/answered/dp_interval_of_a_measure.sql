-- compare: rows
-- half_width: 20000
-- ignore: low, high
-- interval: total in low, high by city
SELECT city, SUM(cost) AS total, DP_INTERVAL_LOW(total) AS low, DP_INTERVAL_HIGH(total) AS high FROM patients GROUP BY city
