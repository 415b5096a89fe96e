-- code: unknown_name
-- says: patient_id
-- works: SELECT COUNT(DISTINCT patient_id) FROM patients
SELECT patient_id FROM patients
