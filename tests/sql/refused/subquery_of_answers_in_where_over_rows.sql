-- code: unsupported_sql
-- says: subquery
-- works: SELECT COUNT(*) FROM patients WHERE age > 45
SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)
