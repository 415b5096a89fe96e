-- compare: rows
SELECT country, COUNT(*) AS n FROM cities JOIN patients USING (city) GROUP BY country
