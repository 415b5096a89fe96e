-- compare: rows
-- ignore: low, high
-- interval: gap in low, high by city
SELECT city, 2 * COUNT(*) FILTER (WHERE insured) - COUNT(*) AS gap, DP_INTERVAL_LOW(gap) AS low, DP_INTERVAL_HIGH(gap) AS high FROM patients GROUP BY city
