-- code: unsupported_sql
-- says: ATTACH
-- works: SELECT COUNT(*) FROM patients
ATTACH 'other.duckdb'
