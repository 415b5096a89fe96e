-- code: unsupported_sql
-- says: OTHER
-- works: SELECT MEDIAN(age) FROM patients
SELECT MEDIAN(bmi) FROM patients
