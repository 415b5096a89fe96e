-- compare: rows
SELECT n_fees, COUNT(*) AS n FROM patients AS p JOIN (SELECT city, COUNT(*) AS n_fees FROM tariffs GROUP BY city) AS t ON p.city = t.city GROUP BY n_fees
