-- compare: rows
SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex HAVING sex IS NOT NULL AND COUNT(*) > 10
