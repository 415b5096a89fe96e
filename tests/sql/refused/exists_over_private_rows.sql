-- code: unsupported_sql
-- says: private rows
-- works: SELECT COUNT(*) FROM patients WHERE age > 89
SELECT EXISTS (SELECT 1 FROM patients WHERE age > 89) AS anybody
