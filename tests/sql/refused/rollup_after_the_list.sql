-- code: unsupported_sql
-- says: as in other dialects
-- works: SELECT sex, COUNT(*) FROM patients GROUP BY ROLLUP(sex)
SELECT sex, COUNT(*) FROM patients GROUP BY sex WITH ROLLUP
