-- code: unsupported_sql
-- says: ON private_column = tariffs.city AND private_column = tariffs.sex
-- works: SELECT COUNT(*) FROM patients AS p JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex
SELECT COUNT(*) FROM patients, tariffs
