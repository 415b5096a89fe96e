-- code: unsupported_sql
-- says: bmi
-- works: SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city
SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.bmi = c.city
