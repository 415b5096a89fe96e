-- compare: rows
-- half_width: 5
SELECT SUM(visits) / COUNT(*) AS visits_each FROM patients
