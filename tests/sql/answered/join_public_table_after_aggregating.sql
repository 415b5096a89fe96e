-- compare: rows
SELECT c.city, 1000000.0 * t.n / c.population AS per_million FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t JOIN cities AS c ON c.city = t.city
