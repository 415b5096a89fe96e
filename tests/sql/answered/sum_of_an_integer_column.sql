-- compare: rows
-- half_width: 2000
SELECT SUM(age) AS years FROM patients
