-- compare: rows
-- ignore: low, high
-- interval: total in low, high by sex
SELECT sex, SUM(n) AS total, DP_INTERVAL_LOW(total) AS low, DP_INTERVAL_HIGH(total) AS high FROM (SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city) AS t GROUP BY sex
