-- compare: rows
SELECT c.country, COUNT(*) AS n FROM cities AS c JOIN patients AS p ON c.city = p.city AND p.age > 50 GROUP BY c.country
