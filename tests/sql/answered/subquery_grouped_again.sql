-- compare: rows
SELECT sex, SUM(n) AS n, COUNT(*) AS n_cities FROM (SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city) AS t GROUP BY sex
