-- code: unsupported_sql
-- says: is a window function over private rows
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city ORDER BY 2 DESC LIMIT 1
SELECT city FROM patients QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY age) = 1
