-- compare: rows
-- half_width: 2000
SELECT COUNT(stay) AS known, SUM(stay) AS days FROM patients
