-- code: unsupported_sql
-- says: ARRAY_AGG(age)
-- works: SELECT age, COUNT(*) FROM patients GROUP BY age
SELECT ARRAY_AGG(age) FROM patients
