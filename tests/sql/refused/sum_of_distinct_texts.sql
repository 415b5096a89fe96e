-- code: unsupported_sql
-- says: sums levels
-- works: SELECT COUNT(DISTINCT city) FROM patients
SELECT SUM(DISTINCT city) FROM patients
