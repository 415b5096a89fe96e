-- code: unsupported_sql
-- says: LIMIT
-- works: SELECT COUNT(*) FROM (SELECT * FROM patients WHERE age > 50) AS t
SELECT COUNT(*) FROM (SELECT * FROM patients LIMIT 100) AS t
