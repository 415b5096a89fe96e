-- code: unsupported_sql
-- says: private rows
-- works: SELECT city FROM cities WHERE city IN (SELECT city FROM patients GROUP BY city)
SELECT city FROM cities WHERE city IN (SELECT city FROM patients WHERE age > 89)
