-- compare: rows
SELECT c.country, COUNT(*) AS n FROM patients AS p JOIN (SELECT city, country FROM cities WHERE population > 500000) AS c ON p.city = c.city GROUP BY c.country
