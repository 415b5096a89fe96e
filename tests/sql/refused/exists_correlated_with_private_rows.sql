-- code: unknown_name
-- says: c.city
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT city FROM cities AS c WHERE EXISTS (SELECT 1 FROM patients AS p WHERE p.city = c.city)
