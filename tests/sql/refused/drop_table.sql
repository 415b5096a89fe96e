-- code: unsupported_sql
-- says: DROP
-- works: SELECT COUNT(*) FROM patients
DROP TABLE patients
