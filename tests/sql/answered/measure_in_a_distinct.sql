-- compare: rows
-- spends: nothing
SELECT DISTINCT stay FROM patients
