-- code: unsupported_sql
-- says: cannot have (band, sex) as its key
-- works: SELECT COUNT(*) FROM patients AS p JOIN (SELECT band, sex, COUNT(*) AS n FROM tariffs GROUP BY band, sex) AS t ON p.city = t.band AND p.sex = t.sex
SELECT COUNT(*) FROM patients AS p JOIN (SELECT * FROM tariffs) AS t ON p.city = t.band AND p.sex = t.sex
