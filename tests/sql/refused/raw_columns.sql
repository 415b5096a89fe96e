-- code: unsupported_sql
-- says: age
-- works: SELECT age, sex, COUNT(*) FROM patients GROUP BY age, sex
SELECT age, sex FROM patients
