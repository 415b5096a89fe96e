-- compare: rows
SELECT city, COUNT(*) AS n FROM patients GROUP BY city
