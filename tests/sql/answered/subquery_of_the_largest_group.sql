-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE city = (SELECT city FROM patients GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1)
