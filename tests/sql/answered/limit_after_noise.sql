-- compare: ordered
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 2
