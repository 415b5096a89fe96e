-- compare: rows
-- half_width: 2
SELECT sex, COUNT(DISTINCT EXTRACT(MONTH FROM admitted)) AS months, COUNT(*) AS n FROM patients WHERE age < 60 GROUP BY sex
