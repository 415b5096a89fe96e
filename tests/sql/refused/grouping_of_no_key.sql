-- code: unsupported_sql
-- says: GROUPING
-- works: SELECT city, GROUPING(city), COUNT(*) FROM patients GROUP BY ROLLUP (city)
SELECT city, GROUPING(age), COUNT(*) FROM patients GROUP BY ROLLUP (city)
