-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE city IN (SELECT city FROM cities WHERE country = 'Norway')
