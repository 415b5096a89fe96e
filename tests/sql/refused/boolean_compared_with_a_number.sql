-- code: sql_syntax
-- says: a boolean, and 1, a whole number
-- works: SELECT COUNT(*) FROM patients WHERE insured = TRUE
SELECT COUNT(*) FROM patients WHERE insured = 1
