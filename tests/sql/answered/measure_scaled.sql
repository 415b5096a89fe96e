-- compare: rows
-- half_width: 20000
SELECT SUM(cost * 0.5 + 10) AS half, SUM(-cost) AS negative FROM patients
