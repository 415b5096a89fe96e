-- code: unsupported_sql
-- says: private rows
-- works: SELECT * FROM patients LIMIT 0
SELECT * FROM patients LIMIT 100
