-- compare: rows
SELECT COUNT(*) AS n FROM patients HAVING COUNT(*) > 100
