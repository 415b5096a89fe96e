-- code: unsupported_sql
-- says: determine each other
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') age >= 40 AS a, age >= 60 AS b, COUNT(*) FROM patients GROUP BY ROLLUP(a, b)
