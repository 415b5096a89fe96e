-- code: unsupported_sql
-- says: is no number
-- works: SELECT CORR(age, visits) FROM patients
SELECT CORR(age, city) FROM patients
