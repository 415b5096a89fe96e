-- compare: rows
SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t WHERE n > 100)
