-- compare: rows
WITH by_city AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) SELECT city, n, n / (SELECT SUM(n) FROM by_city) AS share FROM by_city
