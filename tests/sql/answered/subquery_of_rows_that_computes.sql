-- compare: rows
SELECT decade, COUNT(*) AS n FROM (SELECT FLOOR(age / 10.0) * 10 AS decade, sex FROM patients WHERE age < 80) AS t WHERE sex = 'female' GROUP BY decade
