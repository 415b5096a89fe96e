-- code: unsupported_sql
-- says: UPDATE
-- works: SELECT COUNT(*) FROM patients
UPDATE patients SET age = 44
