-- code: unsupported_sql
-- says: the syntax of another dialect
-- works: SELECT sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT sex, COUNT(*) FROM patients GROUP BY sex WITH ROLLUP
