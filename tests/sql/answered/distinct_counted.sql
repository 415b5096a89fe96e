-- compare: rows
-- half_width: 2
SELECT COUNT(*) AS n_cities FROM (SELECT DISTINCT city FROM patients) AS t
