-- code: unsupported_sql
-- says: is no condition
-- works: SELECT COUNT(*) FROM patients WHERE sex = 'male'
SELECT COUNT(*) FROM patients WHERE 'male'
