-- compare: rows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, insured, COUNT(*) AS n FROM patients GROUP BY CUBE(sex, insured)
