-- code: unsupported_sql
-- says: CURRENT_TIMESTAMP
-- works: SELECT COUNT(*) AS n FROM patients
SELECT COUNT(*) AS n, NOW() AS asked FROM patients
