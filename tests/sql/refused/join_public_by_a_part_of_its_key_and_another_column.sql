-- code: unsupported_sql
-- says: is joined by sex alone
-- works: SELECT COUNT(*) FROM patients AS p JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex
SELECT COUNT(*) FROM patients AS p JOIN tariffs AS t ON p.city = t.band AND p.sex = t.sex
