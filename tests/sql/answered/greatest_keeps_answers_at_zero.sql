-- compare: rows
SELECT city, GREATEST(COUNT(*), 0) AS n FROM patients WHERE age < 25 GROUP BY city
