-- code: sql_syntax
-- says: parse
-- works: SELECT COUNT(*) FROM patients WHERE city LIKE 'O!%' ESCAPE '!'
SELECT COUNT(*) FROM patients WHERE city LIKE 'O%' ESCAPE sex
