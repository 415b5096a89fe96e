-- code: unsupported_sql
-- says: neither
-- works: SELECT age + 1, COUNT(*) FROM patients GROUP BY age + 1
SELECT age + 1, COUNT(*) FROM patients
