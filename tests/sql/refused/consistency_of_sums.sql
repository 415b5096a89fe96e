-- code: unsupported_sql
-- says: Consistency works only for grouping sets of COUNT(*)
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, SUM(age) FROM patients GROUP BY ROLLUP(sex)
