-- compare: rows
-- half_width: 0.25
SELECT sex, COUNT(*) AS n, COUNT_IF(age > 60) AS old FROM (SELECT DISTINCT sex, city, age FROM patients) AS t GROUP BY sex HAVING COUNT(*) > 1
