-- compare: rows
-- half_width: 400
-- ignore: low, high
-- interval: spread in low, high
SELECT VARIANCE(age) AS spread, DP_INTERVAL_LOW(spread) AS low, DP_INTERVAL_HIGH(spread) AS high FROM patients
