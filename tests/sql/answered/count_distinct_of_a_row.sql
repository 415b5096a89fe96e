-- compare: rows
-- half_width: 0.25
SELECT sex, COUNT(DISTINCT (city, age)) AS n FROM patients WHERE visits IS NOT NULL GROUP BY sex
