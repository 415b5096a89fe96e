-- compare: rows
SELECT COUNT_IF(age >= 65) AS old, COUNT_IF(insured) AS insured FROM patients
