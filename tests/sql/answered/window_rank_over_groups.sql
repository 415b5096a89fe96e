-- compare: rows
SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM patients GROUP BY city
