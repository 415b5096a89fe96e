-- code: unknown_name
-- says: patients.csv
-- works: SELECT COUNT(*) FROM patients
SELECT * FROM 'patients.csv'
