-- compare: rows
-- ignore: low, high
-- interval: n in low, high at 0.8 by sex
SELECT sex, COUNT(*) AS n, DP_INTERVAL_LOW(n, 0.8) AS low, DP_INTERVAL_HIGH(n, 0.8) AS high FROM patients GROUP BY sex
