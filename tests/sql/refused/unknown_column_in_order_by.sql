-- code: unknown_name
-- says: people
-- works: SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY people
