-- code: unsupported_sql
-- says: rows where one value is needed
-- works: SELECT COUNT(*) FROM patients JOIN cities USING (city) WHERE population > (SELECT AVG(population) FROM cities)
SELECT COUNT(*) FROM patients JOIN cities USING (city) WHERE population > (SELECT population FROM cities)
