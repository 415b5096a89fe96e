-- code: unsupported_sql
-- says: has ONLY
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM ONLY patients
