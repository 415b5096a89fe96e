-- code: unsupported_sql
-- says: one column
-- works: SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM cities)
SELECT COUNT(*) FROM patients WHERE city IN (SELECT city, country FROM cities)
