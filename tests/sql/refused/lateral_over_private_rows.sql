-- code: unsupported_sql
-- says: LATERAL
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT * FROM cities AS c, LATERAL (SELECT COUNT(*) FROM patients AS p WHERE p.city = c.city) AS t
