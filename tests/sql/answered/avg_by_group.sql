-- compare: rows
-- half_width: 5
SELECT sex, AVG(age) AS mean_age, COUNT(*) AS n FROM patients GROUP BY sex
