-- code: unknown_name
-- says: patient
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patient
