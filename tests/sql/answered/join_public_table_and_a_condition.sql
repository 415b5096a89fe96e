-- compare: rows
SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city AND p.age > c.population
