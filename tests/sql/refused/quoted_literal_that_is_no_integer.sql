-- code: sql_syntax
-- says: '7.0' is not a valid whole number
-- works: SELECT COUNT(*) FROM patients WHERE age = '70'
SELECT COUNT(*) FROM patients WHERE age = '7.0'
