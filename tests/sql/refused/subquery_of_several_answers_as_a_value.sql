-- code: unsupported_sql
-- says: where one value is needed
-- works: SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)
SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients GROUP BY sex)
