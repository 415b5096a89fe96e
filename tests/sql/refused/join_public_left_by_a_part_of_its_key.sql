-- code: unsupported_sql
-- says: ON private_column = t.city AND private_column = t.sex
-- works: SELECT COUNT(*) FROM patients AS p LEFT JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex
SELECT band, COUNT(*) FROM patients AS p LEFT JOIN tariffs AS t ON p.sex = t.sex GROUP BY band
