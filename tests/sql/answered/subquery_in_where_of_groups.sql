-- compare: rows
SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t WHERE n = (SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS u)
