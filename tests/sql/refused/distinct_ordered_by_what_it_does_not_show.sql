-- code: sql_syntax
-- says: which is not in its SELECT list
-- works: SELECT DISTINCT country FROM cities ORDER BY country
SELECT DISTINCT country FROM cities ORDER BY city
