-- compare: ordered
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY -COUNT(*), city
