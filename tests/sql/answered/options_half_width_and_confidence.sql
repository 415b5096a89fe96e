-- compare: rows
-- ignore: low, high
-- interval: n in low, high at 0.9 by sex
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 40, confidence => 0.9) sex, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM patients GROUP BY sex
