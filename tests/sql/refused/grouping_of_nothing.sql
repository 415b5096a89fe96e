-- code: sql_syntax
-- says: parse
-- works: SELECT city, GROUPING(city), COUNT(*) FROM patients GROUP BY ROLLUP (city)
SELECT city, GROUPING(), COUNT(*) FROM patients GROUP BY ROLLUP (city)
