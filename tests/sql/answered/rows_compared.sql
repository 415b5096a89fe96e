-- compare: rows
SELECT city, COUNT(*) AS n FROM patients WHERE (age, visits) >= (50, 2) AND (city, sex) IN (('Oslo', 'female'), ('Bergen', 'male')) GROUP BY city
