-- code: unsupported_sql
-- says: SUM(DISTINCT age)
-- works: SELECT SUM(age) FROM patients
SELECT SUM(DISTINCT age) FROM patients
