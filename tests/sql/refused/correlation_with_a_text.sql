-- code: unsupported_sql
-- says: city is a VARCHAR, and a number is needed
-- works: SELECT CORR(age, visits) FROM patients
SELECT CORR(age, city) FROM patients
