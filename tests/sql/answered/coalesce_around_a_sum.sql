-- compare: rows
-- half_width: 2000
SELECT COALESCE(SUM(visits), 0) AS visits FROM patients WHERE sex = 'male'
