-- code: sql_syntax
-- says: The SQL has a syntax error near
-- works: SELECT city, GROUPING(city), COUNT(*) FROM patients GROUP BY ROLLUP (city)
SELECT city, GROUPING(), COUNT(*) FROM patients GROUP BY ROLLUP (city)
