-- code: unsupported_sql
-- says: SLEEP
-- works: SELECT ROUND(COUNT(*)) FROM patients
SELECT SLEEP(COUNT(*)) FROM patients
