-- compare: rows
SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING COUNT(*) > (SELECT COUNT(*) / 5.5 FROM patients)
