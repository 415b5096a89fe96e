-- compare: rows
SELECT city, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM patients GROUP BY city
