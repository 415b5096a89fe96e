-- compare: rows
-- half_width: 200
SELECT "Blood Type", AVG(cost) AS mean_cost FROM patients GROUP BY "Blood Type"
