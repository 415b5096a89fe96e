-- code: unsupported_sql
-- says: floating point
-- works: SELECT 2 * COUNT(*) FROM patients
SELECT 1e60 * (1e60 * (1e60 * (1e60 * (1e60 * (1e60 * COUNT(*)))))) FROM patients
