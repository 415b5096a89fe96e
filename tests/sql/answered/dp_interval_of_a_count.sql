-- compare: rows
-- ignore: low, high
-- interval: n in low, high
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM patients WHERE age > 40
