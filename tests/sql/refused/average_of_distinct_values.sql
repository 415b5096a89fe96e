-- code: unsupported_sql
-- says: DISTINCT
-- works: SELECT AVG(age) FROM patients
SELECT AVG(DISTINCT age) FROM patients
