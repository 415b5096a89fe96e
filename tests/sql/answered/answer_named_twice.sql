-- compare: rows
SELECT COUNT(*) AS n, COUNT(*) AS m, COUNT(*) FROM patients
