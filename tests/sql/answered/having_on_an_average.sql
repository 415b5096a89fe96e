-- compare: rows
-- half_width: 5
SELECT city, AVG(age) AS mean_age FROM patients GROUP BY city HAVING AVG(age) > 45.6
