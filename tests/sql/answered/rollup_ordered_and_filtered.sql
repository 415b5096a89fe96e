-- compare: ordered
SELECT city, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city) HAVING COUNT(*) > 100 ORDER BY n DESC
