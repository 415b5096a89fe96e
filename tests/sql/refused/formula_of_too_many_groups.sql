-- code: too_large
-- says: is a formula for 44165 groups, and needs more draws at confidence 0.95
-- works: SELECT age, city, AVG(visits) FROM patients GROUP BY 1, 2
SELECT admitted, age, city, AVG(visits) FROM patients GROUP BY 1, 2, 3
