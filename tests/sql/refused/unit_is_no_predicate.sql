-- code: unknown_name
-- says: patient_id
-- works: SELECT COUNT(*) FROM patients WHERE age = 44
SELECT COUNT(*) FROM patients WHERE patient_id = 1044
