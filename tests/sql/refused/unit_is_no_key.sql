-- code: unknown_name
-- says: patient_id
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT patient_id, COUNT(*) FROM patients GROUP BY patient_id
