-- compare: rows
-- half_width: 100000000
SELECT SUM(c.population) AS reach FROM patients AS p JOIN cities AS c ON p.city = c.city
