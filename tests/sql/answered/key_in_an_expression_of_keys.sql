-- compare: rows
SELECT age * 12 AS months, COUNT(*) AS n FROM patients WHERE age < 30 GROUP BY age
