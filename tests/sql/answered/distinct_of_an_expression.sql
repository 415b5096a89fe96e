-- compare: rows
-- spends: nothing
SELECT DISTINCT EXTRACT(month FROM admitted) AS month FROM patients
