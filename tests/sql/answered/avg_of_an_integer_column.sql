-- compare: rows
-- half_width: 2
SELECT AVG(age) AS mean_age FROM patients
