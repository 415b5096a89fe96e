-- compare: ordered
SELECT city AS "Home City", COUNT(*) AS "Number of People" FROM patients GROUP BY city ORDER BY "Number of People" DESC LIMIT 1000
