-- code: too_large
-- says: too long
-- works: SELECT 2 * COUNT(*) FROM patients
SELECT 1e4000 * COUNT(*) FROM patients
