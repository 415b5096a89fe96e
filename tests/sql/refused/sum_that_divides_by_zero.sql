-- code: unsupported_sql
-- says: zero
-- works: SELECT SUM(age / 2.0) FROM patients
SELECT SUM(age / 0) FROM patients
