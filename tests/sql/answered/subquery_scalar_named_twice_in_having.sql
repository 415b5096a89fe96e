-- compare: rows
SELECT city, COUNT(*) / (SELECT COUNT(*) / 5.5 FROM patients) AS share FROM patients GROUP BY city HAVING share > 1 OR share < 0.5
