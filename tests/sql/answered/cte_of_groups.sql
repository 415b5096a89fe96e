-- compare: rows
WITH by_city AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) SELECT city, n FROM by_city WHERE n > 300
