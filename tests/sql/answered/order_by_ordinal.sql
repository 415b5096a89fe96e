-- compare: ordered
SELECT city, COUNT(*) FROM patients GROUP BY city ORDER BY 2
