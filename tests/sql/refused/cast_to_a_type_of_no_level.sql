-- code: unsupported_sql
-- says: type
-- works: SELECT COUNT(*) FROM patients WHERE CAST(age AS DOUBLE) > 30.5
SELECT COUNT(*) FROM patients WHERE CAST(age AS UUID) IS NULL
