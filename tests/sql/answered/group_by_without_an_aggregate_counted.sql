-- compare: rows
-- half_width: 0.25
SELECT COUNT(*) AS n, COUNT(DISTINCT city) AS cities FROM (SELECT city FROM patients WHERE visits > 3 GROUP BY 1, age) AS t
