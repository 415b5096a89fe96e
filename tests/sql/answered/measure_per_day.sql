-- compare: rows
-- half_width: 2000
SELECT SUM(cost) / SUM(stay) AS cost_a_day FROM patients
