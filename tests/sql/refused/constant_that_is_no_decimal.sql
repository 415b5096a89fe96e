-- code: unsupported_sql
-- says: x'1F'
-- works: SELECT 31 * COUNT(*) FROM patients
SELECT x'1F' * COUNT(*) FROM patients
