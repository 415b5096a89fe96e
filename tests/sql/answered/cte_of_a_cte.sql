-- compare: rows
WITH old AS (SELECT * FROM patients WHERE age >= 65), by_city AS (SELECT city, COUNT(*) AS n FROM old GROUP BY city) SELECT MAX(n) AS largest, MIN(n) AS smallest FROM by_city
