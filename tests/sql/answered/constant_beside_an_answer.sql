-- compare: rows
SELECT 'patients' AS what, 2 + 3 AS five, COUNT(*) AS n FROM patients
