-- code: unsupported_sql
-- says: something else than a numeric column
-- works: SELECT MEDIAN(age) FROM patients
SELECT MEDIAN(age * age) FROM patients
