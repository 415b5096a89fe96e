-- code: unsupported_sql
-- says: does not grow
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients AS OF '2024-01-01'
