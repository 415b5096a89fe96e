-- compare: rows
SELECT city FROM cities EXCEPT SELECT city FROM patients GROUP BY city
