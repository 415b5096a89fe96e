-- code: unsupported_sql
-- says: is not a quantile of a numeric column
-- works: SELECT MEDIAN(age) FROM patients
SELECT MEDIAN(age * age) FROM patients
