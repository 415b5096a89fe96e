-- code: unsupported_sql
-- says: is a VARCHAR, and a condition is needed
-- works: SELECT COUNT(*) FROM patients WHERE sex = 'male'
SELECT COUNT(*) FROM patients WHERE 'male'
