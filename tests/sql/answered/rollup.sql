-- compare: rows
SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city, sex)
