-- code: unsupported_sql
-- says: SUM(*)
-- works: SELECT COUNT(*) FROM patients
SELECT SUM(*) FROM patients
