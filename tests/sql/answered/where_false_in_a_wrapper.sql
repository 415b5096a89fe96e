-- compare: rows
-- spends: nothing
SELECT * FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS probe WHERE 1 = 0
