-- compare: rows
-- half_width: 5
SELECT city, sex, AVG(age) AS mean_age FROM patients GROUP BY GROUPING SETS ((city), (sex))
