-- compare: rows
-- half_width: 0.25
WITH seen(a, c) AS (SELECT DISTINCT age, city FROM patients), older AS (SELECT * FROM seen WHERE a > 50) SELECT c, COUNT(*) AS n, (SELECT COUNT(*) FROM seen) AS every FROM older GROUP BY c
