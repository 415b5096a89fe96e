-- compare: rows
-- ignore: low, high
-- interval: n in low, high by city, insured
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact')
       city, insured, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high
FROM patients WHERE age >= 40 AND insured IS NOT NULL GROUP BY ROLLUP(city, insured)
