-- code: unsupported_sql
-- says: is joined by other conditions besides its key
-- works: SELECT COUNT(*) FROM patients AS p LEFT JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex
SELECT COUNT(*) FROM patients AS p LEFT JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex AND p.city = t.band
