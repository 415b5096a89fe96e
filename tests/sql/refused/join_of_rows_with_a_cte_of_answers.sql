-- code: unsupported_sql
-- says: which is not made from public tables only
-- works: WITH t AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) SELECT c.country, t.n FROM t JOIN cities AS c ON t.city = c.city
WITH t AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) SELECT COUNT(*) FROM patients AS p JOIN t ON p.city = t.city WHERE t.n > 100
