-- code: unsupported_sql
-- says: DELETE
-- works: SELECT COUNT(*) FROM patients
DELETE FROM patients
