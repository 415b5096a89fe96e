-- compare: rows
SELECT sex, city, n FROM (SELECT sex, city, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) AS place FROM patients GROUP BY sex, city) AS ranked WHERE place = 1
