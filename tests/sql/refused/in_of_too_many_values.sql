-- code: too_large
-- says: 15625 values
-- works: SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM cities)
SELECT COUNT(*) FROM patients WHERE city IN (SELECT a.city FROM cities AS a, cities AS b, cities AS c, cities AS d, cities AS e, cities AS f)
