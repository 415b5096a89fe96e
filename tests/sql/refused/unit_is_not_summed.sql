-- code: unknown_name
-- says: patient_id
-- works: SELECT COUNT(DISTINCT patient_id) FROM patients
SELECT SUM(patient_id) FROM patients
