-- compare: rows
SELECT sex, COUNT(*) / (SELECT COUNT(DISTINCT patient_id) FROM patients) AS share FROM patients GROUP BY sex
