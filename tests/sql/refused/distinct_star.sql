-- code: unsupported_sql
-- says: private rows
-- works: SELECT DISTINCT city, sex FROM patients
SELECT DISTINCT * FROM patients
