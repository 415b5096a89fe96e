-- code: unsupported_sql
-- says: zero
-- works: SELECT COUNT(*) / 2 FROM patients
SELECT (1 / 0) * COUNT(*) FROM patients
