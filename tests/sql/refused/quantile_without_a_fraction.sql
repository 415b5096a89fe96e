-- code: unsupported_sql
-- says: fraction
-- works: SELECT QUANTILE_CONT(age, 0.5) FROM patients
SELECT QUANTILE_CONT(age) FROM patients
