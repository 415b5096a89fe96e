-- compare: rows
SELECT SUM(CASE WHEN sex = 'male' THEN 1 ELSE 0 END) AS men, SUM(CASE WHEN age < 40 THEN age ELSE 0 END) AS young_years FROM patients
