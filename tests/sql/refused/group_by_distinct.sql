-- code: unsupported_sql
-- says: is more than a list
-- works: SELECT sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT sex, COUNT(*) FROM patients GROUP BY DISTINCT ROLLUP(sex), ROLLUP(sex)
