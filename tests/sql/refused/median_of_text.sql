-- code: unsupported_sql
-- says: city
-- works: SELECT MEDIAN(age) FROM patients
SELECT MEDIAN(city) FROM patients
