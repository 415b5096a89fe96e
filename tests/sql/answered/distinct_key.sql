-- compare: rows
-- spends: nothing
SELECT DISTINCT city FROM patients
