-- code: unsupported_sql
-- says: DISTINCT ON
-- works: SELECT city, AVG(age) FROM patients GROUP BY city
SELECT DISTINCT ON (city) city, age FROM patients ORDER BY city, age
