-- compare: rows
-- spends: nothing
SELECT COUNT(*) AS n_cities FROM (SELECT DISTINCT city FROM patients) AS t
