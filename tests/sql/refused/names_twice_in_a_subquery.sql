-- code: unsupported_sql
-- says: age
-- works: SELECT COUNT(*) FROM (SELECT age, visits FROM patients) AS t
SELECT COUNT(*) FROM (SELECT age, visits AS age FROM patients) AS t WHERE age > 3
