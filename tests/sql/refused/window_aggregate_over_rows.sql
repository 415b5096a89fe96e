-- code: unsupported_sql
-- says: is a window function over private rows
-- works: SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) FROM patients GROUP BY age
SELECT COUNT(*) OVER (ORDER BY age) FROM patients
