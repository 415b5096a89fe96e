-- code: unsupported_sql
-- says: ivision by zero
-- works: SELECT COUNT(*) FROM patients WHERE visits > 0 AND 100 / visits > 20
SELECT COUNT(*) FROM patients WHERE 100 / visits > 20
