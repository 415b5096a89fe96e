-- code: sql_syntax
-- says: is ambiguous: several columns of the SELECT list have this name
-- works: SELECT city AS x, population AS y FROM cities ORDER BY x
SELECT city AS x, population AS x FROM cities ORDER BY x
