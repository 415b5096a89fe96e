-- compare: rows
SELECT country, COUNT(*) AS n FROM patients JOIN cities USING (city) GROUP BY country
