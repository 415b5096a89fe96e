-- code: unsupported_sql
-- says: literal escape
-- works: SELECT COUNT(*) FROM patients WHERE city LIKE 'O!%' ESCAPE '!'
SELECT COUNT(*) FROM patients WHERE city LIKE 'O%' ESCAPE NULL
