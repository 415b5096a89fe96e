-- code: unknown_name
-- says: patient_id
-- works: SELECT COUNT(DISTINCT patient_id) FROM patients
SELECT city, COUNT(*) FROM (SELECT DISTINCT patient_id, city FROM patients) AS t GROUP BY city
