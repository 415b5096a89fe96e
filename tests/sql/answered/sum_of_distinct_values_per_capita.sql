-- compare: rows
SELECT country, COUNT(*) * 1000000.0 / SUM(DISTINCT population) AS per_million FROM patients JOIN cities USING (city) GROUP BY country
