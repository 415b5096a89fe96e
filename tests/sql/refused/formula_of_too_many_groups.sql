-- code: too_large
-- says: in 44165 groups needs more random draws at confidence 0.95
-- works: SELECT age, city, AVG(visits) FROM patients GROUP BY 1, 2
SELECT admitted, age, city, AVG(visits) FROM patients GROUP BY 1, 2, 3
