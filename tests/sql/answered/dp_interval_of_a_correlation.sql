-- compare: rows
-- half_width: 0.2
-- ignore: low, high
-- interval: c in low, high
SELECT CORR(age, visits) AS c, DP_INTERVAL_LOW(c) AS low, DP_INTERVAL_HIGH(c) AS high FROM patients
