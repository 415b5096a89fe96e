-- code: unsupported_sql
-- says: is a window function over private rows
-- works: SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) FROM patients GROUP BY city
SELECT city, ROW_NUMBER() OVER (PARTITION BY city ORDER BY age) FROM patients
