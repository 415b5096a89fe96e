-- code: invalid_target
-- says: nonnegative, global
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'perfect') sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
