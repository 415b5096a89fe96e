-- compare: rows
-- ignore: low, high
-- duckdb:
--   SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY admitted) AS day, PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY admitted) AS low, PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY admitted) AS high FROM patients WHERE age > 40
SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY admitted) AS day, DP_INTERVAL_LOW(day) AS low, DP_INTERVAL_HIGH(day) AS high FROM patients WHERE age > 40
