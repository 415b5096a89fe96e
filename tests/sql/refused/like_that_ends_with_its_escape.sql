-- code: unsupported_sql
-- says: escape
-- works: SELECT COUNT(*) FROM patients WHERE city LIKE 'O%'
SELECT COUNT(*) FROM patients WHERE city LIKE 'O\'
