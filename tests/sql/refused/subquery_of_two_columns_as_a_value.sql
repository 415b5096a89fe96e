-- code: unsupported_sql
-- says: column
-- works: SELECT (SELECT COUNT(*) FROM patients) AS n
SELECT (SELECT COUNT(*), SUM(age) FROM patients) AS n
