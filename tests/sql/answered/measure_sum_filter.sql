-- compare: rows
-- half_width: 20000
SELECT SUM(cost) FILTER (WHERE sex = 'female') AS women, SUM(cost) AS everybody FROM patients
