-- compare: rows
-- half_width: 2
SELECT AVG(visits) AS visits FROM patients
