-- code: unsupported_sql
-- says: is joined by bmi, but single values of this column are not public
-- works: SELECT COUNT(*) FROM patients AS p JOIN (SELECT population FROM cities) AS c ON p.visits = c.population
SELECT COUNT(*) FROM patients AS p JOIN (SELECT population FROM cities) AS c ON p.bmi = c.population
