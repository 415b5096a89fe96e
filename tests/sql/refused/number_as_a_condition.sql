-- code: unsupported_sql
-- says: age is no condition
-- works: SELECT COUNT(*) FROM patients WHERE age > 0
SELECT COUNT(*) FROM patients WHERE age
