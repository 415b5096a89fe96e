-- compare: rows
-- spends: nothing
SELECT city, COUNT(*) AS n FROM patients GROUP BY city LIMIT 0
