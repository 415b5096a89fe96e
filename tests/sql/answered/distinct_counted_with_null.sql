-- compare: rows
-- half_width: 2
SELECT COUNT(*) AS n, COUNT(sex) AS known, COUNT(1) AS also, COUNT(DISTINCT sex) AS different FROM (SELECT DISTINCT sex FROM patients) AS t
