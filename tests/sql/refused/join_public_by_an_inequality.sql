-- code: unsupported_sql
-- says: is joined without an equality on its key
-- works: SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city
SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.age < c.population
