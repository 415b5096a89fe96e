-- compare: rows
SELECT k.n_cities, COUNT(*) AS n
FROM patients AS p
JOIN cities AS c ON p.city = c.city
JOIN (SELECT country, COUNT(*) AS n_cities FROM cities GROUP BY country) AS k ON c.country = k.country
GROUP BY k.n_cities
