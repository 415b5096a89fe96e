-- compare: rows
SELECT COUNT(*) FROM patients
