-- code: sql_syntax
-- says: quote
-- works: SELECT COUNT(*) FROM patients WHERE city = 'Oslo'
SELECT COUNT(*) FROM patients WHERE city = 'Oslo
