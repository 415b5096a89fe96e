-- compare: rows
SELECT sex, SUM(n) AS n, MAX(n) AS most, COUNT(*) AS n_cities, AVG(n) AS mean FROM (SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city) AS t GROUP BY sex
