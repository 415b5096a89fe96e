-- code: unsupported_sql
-- says: key
-- works: SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city WHERE p.age > 30
SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city AND p.age > c.population
