-- code: unsupported_sql
-- says: weighs records so differently
-- works: SELECT COUNT(*), SUM(age) FROM patients
SELECT 1e20 * COUNT(*) + SUM(age) FROM patients
