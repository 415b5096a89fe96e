-- compare: none the fit ends near the counts, not on them
-- n_rows: 3
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'global') sex, COUNT(*) AS n, DP_STDERR(n)
FROM patients GROUP BY ROLLUP(sex) HAVING COUNT(*) > 50 ORDER BY n DESC LIMIT 3
