-- code: unsupported_sql
-- says: cost
-- works: SELECT DISTINCT city FROM patients
SELECT DISTINCT cost FROM patients
