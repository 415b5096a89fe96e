-- compare: rows
SELECT SUM(n) AS n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING COUNT(*) > 300) AS t
