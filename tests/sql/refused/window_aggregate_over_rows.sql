-- code: unsupported_sql
-- says: window over private rows
-- works: SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) FROM patients GROUP BY age
SELECT COUNT(*) OVER (ORDER BY age) FROM patients
