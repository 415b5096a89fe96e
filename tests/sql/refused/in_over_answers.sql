-- code: unsupported_sql
-- says: public
-- works: SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM cities WHERE is_capital)
SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t WHERE n > 100)
