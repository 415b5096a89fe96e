-- compare: rows
-- half_width: 2000
SELECT SUM(visits) FILTER (WHERE city <> 'Rome') AS n FROM patients
