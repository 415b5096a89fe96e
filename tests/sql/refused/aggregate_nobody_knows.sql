-- code: unsupported_sql
-- says: FROBNICATE
-- works: SELECT SUM(age) FROM patients
SELECT FROBNICATE(age) FROM patients
