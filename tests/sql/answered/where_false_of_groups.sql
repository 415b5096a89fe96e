-- compare: rows
-- spends: nothing
SELECT city, COUNT(*) AS n FROM patients WHERE 1 = 0 GROUP BY city
