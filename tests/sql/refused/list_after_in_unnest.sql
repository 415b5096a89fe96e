-- code: unsupported_sql
-- says: not supported in this form
-- works: SELECT COUNT(*) FROM patients WHERE age IN (30, 31)
SELECT COUNT(*) FROM patients WHERE age IN UNNEST(ARRAY[30, 31])
