-- compare: rows
-- half_width: 1
SELECT SUM(visits) AS s, SUM(DISTINCT visits) AS d, COUNT(*) AS n FROM (SELECT DISTINCT visits FROM patients) AS t
