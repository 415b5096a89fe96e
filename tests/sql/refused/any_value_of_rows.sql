-- code: unsupported_sql
-- says: ANY_VALUE(age)
-- works: SELECT AVG(age) FROM patients
SELECT ANY_VALUE(age) FROM patients
