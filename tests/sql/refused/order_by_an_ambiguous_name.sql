-- code: sql_syntax
-- says: may be several columns
-- works: SELECT city AS x, population AS y FROM cities ORDER BY x
SELECT city AS x, population AS x FROM cities ORDER BY x
