-- code: sql_syntax
-- says: The SQL has a syntax error near
-- works: SELECT COUNT(*) FROM patients WHERE city LIKE 'O!%' ESCAPE '!'
SELECT COUNT(*) FROM patients WHERE city LIKE 'O%' ESCAPE sex
