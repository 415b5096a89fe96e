-- code: unsupported_sql
-- says: RANDOM()
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients WHERE RANDOM() < 0.5
