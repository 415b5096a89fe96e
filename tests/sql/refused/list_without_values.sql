-- code: sql_syntax
-- says: has no values between its parentheses
-- works: SELECT COUNT(*) FROM patients WHERE age IN (NULL)
SELECT COUNT(*) FROM patients WHERE age IN ()
