-- compare: rows
-- spends: nothing
SELECT city FROM patients GROUP BY city
