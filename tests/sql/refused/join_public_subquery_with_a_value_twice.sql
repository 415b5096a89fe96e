-- code: unsupported_sql
-- says: more than once
-- works: SELECT COUNT(*) FROM patients AS p JOIN (SELECT city, country FROM cities) AS c ON p.city = c.city
SELECT COUNT(*) FROM patients AS p JOIN (SELECT country FROM cities) AS c ON p.city = c.country
