-- code: unsupported_sql
-- says: CORR
-- works: SELECT SUM(age * visits), SUM(age), SUM(visits), COUNT(*) FROM patients
SELECT CORR(age, visits) FROM patients
