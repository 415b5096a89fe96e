-- compare: rows
-- ignore: low
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'nonnegative')
       insured, sex, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low
FROM patients GROUP BY GROUPING SETS ((insured, sex), (sex, insured), (sex), ())
