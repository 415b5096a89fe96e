-- code: unsupported_sql
-- says: whole row
-- works: SELECT city, sex, COUNT(*) FROM patients GROUP BY city, sex
SELECT patients.*, COUNT(*) FROM patients
