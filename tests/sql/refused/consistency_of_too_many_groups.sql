-- code: too_large
-- says: tacit marginals
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') age, city, visits, COUNT(*) FROM patients GROUP BY CUBE(age, city, visits)
