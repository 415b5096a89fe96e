-- compare: rows
SELECT age > (SELECT AVG(age) FROM patients) AS old, COUNT(*) AS n FROM patients GROUP BY 1
