-- compare: rows
SELECT city AS sex, COUNT(*) AS age FROM patients GROUP BY city
