-- compare: rows
SELECT SUM(n) AS n FROM (SELECT city, COUNT(*) AS n FROM patients JOIN cities USING (city) WHERE population > (SELECT AVG(population) FROM cities) AND admitted < (SELECT MAX(day) FROM holidays) GROUP BY city) AS t
