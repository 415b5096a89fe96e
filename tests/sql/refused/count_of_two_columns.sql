-- code: unsupported_sql
-- says: one argument
-- works: SELECT COUNT(age), COUNT(visits) FROM patients
SELECT COUNT(age, visits) FROM patients
