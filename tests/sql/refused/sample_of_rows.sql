-- code: unsupported_sql
-- says: TABLESAMPLE
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients TABLESAMPLE SYSTEM (10)
