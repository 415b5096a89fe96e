-- compare: rows
SELECT c.country, p.sex, COUNT(*) AS n FROM patients AS p, cities AS c WHERE p.city = c.city AND c.population > 500000 GROUP BY c.country, p.sex
