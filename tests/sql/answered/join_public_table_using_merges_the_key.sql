-- compare: rows
SELECT city, COUNT(*) AS n FROM patients JOIN cities USING (city) GROUP BY city
