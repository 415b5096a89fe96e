-- compare: rows
SELECT AVG(n) AS mean_size, MAX(n) AS largest FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
