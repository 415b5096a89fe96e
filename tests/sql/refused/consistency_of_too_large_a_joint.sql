-- code: too_large
-- says: joint table
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'global') age, admitted, visits, COUNT(*) FROM patients GROUP BY GROUPING SETS ((age), (admitted), (visits))
