-- code: sql_syntax
-- says: A UNION cannot be ordered by
-- works: SELECT city FROM cities UNION SELECT country FROM cities ORDER BY city
SELECT city FROM cities UNION SELECT country FROM cities ORDER BY city || 'x'
