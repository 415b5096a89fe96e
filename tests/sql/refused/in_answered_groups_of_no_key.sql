-- code: unsupported_sql
-- says: GROUP BY the column
-- works: SELECT city, COUNT(*) FROM patients WHERE city IN (SELECT city FROM patients GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY city
SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM patients GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2)
