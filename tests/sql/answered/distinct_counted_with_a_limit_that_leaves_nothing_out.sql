-- compare: rows
-- half_width: 2
SELECT COUNT(*) AS n FROM (SELECT * FROM (SELECT DISTINCT city, sex FROM patients ORDER BY city LIMIT 1000) AS s) AS t
