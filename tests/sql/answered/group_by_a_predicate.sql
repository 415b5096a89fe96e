-- compare: rows
SELECT age >= 65 AS old, COUNT(*) AS n FROM patients GROUP BY old
