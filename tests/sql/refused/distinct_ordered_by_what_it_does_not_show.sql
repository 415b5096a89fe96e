-- code: sql_syntax
-- says: which it does not show
-- works: SELECT DISTINCT country FROM cities ORDER BY country
SELECT DISTINCT country FROM cities ORDER BY city
