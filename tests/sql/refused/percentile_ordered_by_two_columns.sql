-- code: unsupported_sql
-- says: more than one
-- works: SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM patients
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, visits) FROM patients
