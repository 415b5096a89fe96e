-- code: too_large
-- says: too large
-- works: SELECT 2 * COUNT(*) FROM patients
SELECT (1e60 * 1e60 * 1e60 * 1e60 * 1e60 * 1e60 * 1e60) * COUNT(*) FROM patients
