-- code: unsupported_sql
-- says: depends on the private row by other conditions than equalities of columns
-- works: SELECT COUNT(*) FROM patients AS p WHERE EXISTS (SELECT 1 FROM cities AS c WHERE c.city = p.city AND c.population > 1000)
SELECT COUNT(*) FROM patients AS p WHERE EXISTS (SELECT 1 FROM cities AS c WHERE c.population > p.cost)
