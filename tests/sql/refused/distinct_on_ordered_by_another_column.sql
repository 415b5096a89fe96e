-- code: sql_syntax
-- says: which is not one of its keys
-- works: SELECT DISTINCT ON (country) country, city FROM cities ORDER BY country, city
SELECT DISTINCT ON (country) country, city FROM cities ORDER BY city
