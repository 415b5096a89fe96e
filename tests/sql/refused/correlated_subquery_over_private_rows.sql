-- code: unknown_name
-- says: c.city
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT c.city, (SELECT COUNT(*) FROM patients AS p WHERE p.city = c.city) AS n FROM cities AS c
