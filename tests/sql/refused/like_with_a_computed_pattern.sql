-- code: unsupported_sql
-- says: literal pattern
-- works: SELECT COUNT(*) FROM patients WHERE city LIKE 'O%'
SELECT COUNT(*) FROM patients WHERE city LIKE sex
