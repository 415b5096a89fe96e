-- compare: rows
-- ignore: low, high
-- interval: total in low, high
WITH by_city AS (SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city), by_sex AS (SELECT sex, SUM(n) AS n FROM by_city GROUP BY sex) SELECT SUM(n) AS total, DP_INTERVAL_LOW(total) AS low, DP_INTERVAL_HIGH(total) AS high FROM by_sex WHERE sex = 'female'
