-- compare: rows
SELECT COUNT(DISTINCT patient_id) AS people FROM patients WHERE age >= 65
