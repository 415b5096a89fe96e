-- compare: rows
SELECT c.country, COUNT(*) AS n FROM patients AS p LEFT JOIN cities AS c ON p.city = c.city GROUP BY c.country
