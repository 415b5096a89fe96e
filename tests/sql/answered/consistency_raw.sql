-- compare: rows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'raw') sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP(sex)
