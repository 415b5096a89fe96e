-- code: sql_syntax
-- says: a text, and b.age, a whole number
-- works: SELECT a.city, a.n + b.n AS n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS a JOIN (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) AS b ON a.city = CAST(b.age AS VARCHAR)
SELECT a.city, a.n + b.n AS n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS a JOIN (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) AS b ON a.city = b.age
