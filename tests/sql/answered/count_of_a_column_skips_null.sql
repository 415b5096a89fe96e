-- compare: rows
SELECT COUNT(visits) AS known, COUNT(*) - COUNT(visits) AS unknown, COUNT(age) AS everybody FROM patients
