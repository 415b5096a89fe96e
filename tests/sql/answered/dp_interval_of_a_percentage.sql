-- compare: rows
-- ignore: low, high
-- interval: percent in low, high
SELECT 100.0 * COUNT(*) FILTER (WHERE insured) / COUNT(*) AS percent, DP_INTERVAL_LOW(percent) AS low, DP_INTERVAL_HIGH(percent) AS high FROM patients
