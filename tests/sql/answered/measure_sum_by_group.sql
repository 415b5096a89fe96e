-- compare: rows
-- half_width: 20000
SELECT city, SUM(cost) AS total FROM patients GROUP BY city
