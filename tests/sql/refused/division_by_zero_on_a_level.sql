-- code: unsupported_sql
-- says: ivision by zero
-- works: SELECT COUNT(*) FROM patients WHERE 100 / NULLIF(visits, 0) > 20
SELECT COUNT(*) FROM patients WHERE 100 / visits > 20
