-- compare: rows
-- half_width: 5000
SELECT SUM(2 * age + visits) AS total FROM patients
