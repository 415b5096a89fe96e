-- compare: rows
-- half_width: 100
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS quarter FROM patients
