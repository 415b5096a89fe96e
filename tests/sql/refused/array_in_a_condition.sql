-- code: unsupported_sql
-- says: not supported in a value or condition
-- works: SELECT COUNT(*) FROM patients WHERE age IN (30, 31)
SELECT COUNT(*) FROM patients WHERE age = ANY(ARRAY[30] || 31)
