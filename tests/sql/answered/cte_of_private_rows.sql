-- compare: rows
WITH old AS (SELECT city, age FROM patients WHERE age >= 65) SELECT city, COUNT(*) AS n FROM old GROUP BY city
