-- compare: rows
-- half_width: 20000
SELECT SUM(cost) AS total FROM patients
