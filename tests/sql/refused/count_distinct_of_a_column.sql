-- code: unsupported_sql
-- says: COUNT(DISTINCT city)
-- works: SELECT COUNT(DISTINCT patient_id) FROM patients
SELECT COUNT(DISTINCT city) FROM patients
