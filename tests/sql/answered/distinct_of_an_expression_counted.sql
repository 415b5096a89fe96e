-- compare: rows
-- half_width: 2
SELECT COUNT(*) AS n FROM (SELECT DISTINCT EXTRACT(MONTH FROM admitted) AS m, insured FROM patients WHERE sex = 'male') AS t
