-- compare: rows
SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM patients GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2)
