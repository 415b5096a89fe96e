-- code: unsupported_sql
-- says: parameter
-- works: SELECT COUNT(*) FROM patients WHERE age > 50
SELECT COUNT(*) FROM patients WHERE age > $1
