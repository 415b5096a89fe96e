-- compare: rows
SELECT COUNT(*) FILTER (WHERE insured AND sex = 'female') AS n FROM patients
