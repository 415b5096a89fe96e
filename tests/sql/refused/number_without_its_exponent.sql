-- code: unsupported_sql
-- says: 1e is not a decimal number
-- works: SELECT 1e3 * COUNT(*) FROM patients
SELECT 1e * COUNT(*) FROM patients
