-- compare: rows
-- half_width: 0.25
SELECT COUNT(*) AS n, COUNT(visits) AS known, COUNT(DISTINCT age) AS ages, COUNT(*) FILTER (WHERE age < 30) AS young FROM (SELECT DISTINCT city, age, visits FROM patients) AS t WHERE age < 40
