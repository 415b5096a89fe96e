-- code: unsupported_sql
-- says: FOR UPDATE
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients FOR UPDATE
