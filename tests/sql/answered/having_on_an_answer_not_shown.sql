-- compare: rows
-- half_width: 1000
SELECT city FROM patients GROUP BY city HAVING SUM(visits) > 1500
