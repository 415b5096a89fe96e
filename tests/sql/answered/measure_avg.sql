-- compare: rows
-- half_width: 100
SELECT AVG(cost) AS mean_cost, AVG(stay) AS mean_stay FROM patients
