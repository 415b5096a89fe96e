-- code: unsupported_sql
-- says: FULL
-- works: SELECT c.country, COUNT(*) FROM patients AS p LEFT JOIN cities AS c ON p.city = c.city GROUP BY c.country
SELECT COUNT(*) FROM patients AS p FULL JOIN cities AS c ON p.city = c.city
