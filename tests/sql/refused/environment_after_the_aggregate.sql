-- code: unsupported_sql
-- says: CURRENT_SETTING
-- works: SELECT COUNT(*) AS n FROM patients
SELECT CURRENT_SETTING('memory_limit') AS m, COUNT(*) AS n FROM patients
