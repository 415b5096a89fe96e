-- compare: rows
-- spends: nothing
SELECT DISTINCT sex, insured FROM patients
