-- compare: rows
SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city
