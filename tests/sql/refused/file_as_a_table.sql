-- code: unsupported_sql
-- says: READ_CSV
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM read_csv('patients.csv')
