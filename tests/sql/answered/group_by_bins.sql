-- compare: rows
SELECT bmi, COUNT(*) AS n FROM patients GROUP BY bmi
