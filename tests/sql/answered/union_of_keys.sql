-- compare: rows
SELECT city FROM patients GROUP BY city UNION SELECT city FROM cities
