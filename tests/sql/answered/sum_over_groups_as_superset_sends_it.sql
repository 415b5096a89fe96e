-- compare: ordered
SELECT sex AS sex, SUM(n) AS "SUM(n)", SUM(spent) AS "SUM(spent)" FROM (SELECT sex, city, COUNT(*) AS n, SUM(cost) AS spent FROM patients GROUP BY sex, city) AS virtual_table GROUP BY sex ORDER BY "SUM(n)" DESC LIMIT 1000
