-- code: unsupported_sql
-- says: t
-- works: SELECT city, AVG(age) FROM patients GROUP BY city
SELECT COUNT(*) FROM patients AS p JOIN (SELECT city, AVG(age) AS a FROM patients GROUP BY city) AS t ON p.city = t.city WHERE p.age > t.a
