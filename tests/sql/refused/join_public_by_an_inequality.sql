-- code: unsupported_sql
-- says: c.population
-- works: SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city
SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.age < c.population
