-- code: unsupported_sql
-- says: cost
-- works: SELECT SUM(cost) FROM patients WHERE age > 50
SELECT COUNT(*) FROM patients WHERE cost > 100
