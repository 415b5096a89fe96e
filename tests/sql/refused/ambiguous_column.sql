-- code: unknown_name
-- says: city
-- works: SELECT p.city, COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city GROUP BY p.city
SELECT city, COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city GROUP BY city
