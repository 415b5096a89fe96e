-- compare: rows
SELECT SUM(age) AS n FROM patients WHERE city NOT IN (SELECT city FROM patients GROUP BY city HAVING COUNT(*) > 500.5) AND age IN (SELECT age FROM patients GROUP BY age HAVING COUNT(*) > 30.5)
