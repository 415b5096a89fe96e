-- compare: rows
SELECT city, city AS again, COUNT(*) AS n FROM patients GROUP BY city
