-- code: sql_syntax
-- says: age is a whole number, and a condition is needed
-- works: SELECT COUNT(*) FROM patients WHERE age > 0
SELECT COUNT(*) FROM patients WHERE age
