-- compare: rows
-- half_width: 5
-- ignore: low, high
-- interval: mean_age in low, high by sex
SELECT sex, AVG(age) AS mean_age, DP_INTERVAL_LOW(mean_age) AS low, DP_INTERVAL_HIGH(mean_age) AS high FROM patients GROUP BY sex
