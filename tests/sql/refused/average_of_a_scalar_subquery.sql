-- code: unsupported_sql
-- says: each record
-- works: SELECT AVG(age) FROM patients
SELECT AVG((SELECT COUNT(*) FROM patients)) FROM patients
