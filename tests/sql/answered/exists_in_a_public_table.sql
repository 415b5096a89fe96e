-- compare: rows
SELECT c.sex, COUNT(*) AS n FROM patients AS c WHERE EXISTS (SELECT 1 FROM cities AS x WHERE x.city = c.city AND x.population > 1000000) GROUP BY c.sex
