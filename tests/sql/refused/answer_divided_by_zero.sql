-- code: unsupported_sql
-- says: zero
-- works: SELECT COUNT(*) / 2 FROM patients
SELECT COUNT(*) / 0 FROM patients
