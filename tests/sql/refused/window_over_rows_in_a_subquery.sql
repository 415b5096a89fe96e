-- code: unsupported_sql
-- says: is a window function over private rows
-- works: SELECT COUNT(*) FROM (SELECT city, age FROM patients) AS t WHERE age > 50
SELECT COUNT(*) FROM (SELECT city, ROW_NUMBER() OVER (ORDER BY age) AS place FROM patients) AS t WHERE place < 10
