-- code: unsupported_sql
-- says: is not joined by one equality with its key
-- works: SELECT COUNT(c.country) FROM patients AS p LEFT JOIN cities AS c ON p.city = c.city
SELECT COUNT(c.country) FROM patients AS p LEFT JOIN cities AS c ON p.age < c.population
