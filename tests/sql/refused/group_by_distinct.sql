-- code: unsupported_sql
-- says: has an unsupported clause
-- works: SELECT sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT sex, COUNT(*) FROM patients GROUP BY DISTINCT ROLLUP(sex), ROLLUP(sex)
