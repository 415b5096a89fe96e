-- compare: rows
SELECT city, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM patients GROUP BY city HAVING COUNT(*) > 300
