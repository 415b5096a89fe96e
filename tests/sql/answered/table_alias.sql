-- compare: rows
SELECT p.city, COUNT(*) AS n FROM patients AS p WHERE p.age > 30 GROUP BY p.city
