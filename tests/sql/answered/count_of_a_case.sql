-- compare: rows
SELECT COUNT(CASE WHEN city = 'Oslo' THEN 1 END) AS oslo FROM patients
