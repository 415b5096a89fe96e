-- code: unsupported_sql
-- says: is a parameter
-- works: SELECT COUNT(*) + COALESCE(2, 1) FROM patients
SELECT COUNT(*) + COALESCE($1, 1) FROM patients
