-- code: unsupported_sql
-- says: a value of (band, sex) more than once
-- works: SELECT COUNT(*) FROM patients AS p JOIN (SELECT band, sex, COUNT(*) AS n FROM tariffs GROUP BY band, sex) AS t ON p.city = t.band AND p.sex = t.sex
SELECT COUNT(*) FROM patients AS p JOIN (SELECT * FROM tariffs) AS t ON p.city = t.band AND p.sex = t.sex
