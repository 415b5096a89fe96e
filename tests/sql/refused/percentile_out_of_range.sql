-- code: unsupported_sql
-- says: 1.5
-- works: SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM patients
SELECT PERCENTILE_CONT(1.5) WITHIN GROUP (ORDER BY age) FROM patients
