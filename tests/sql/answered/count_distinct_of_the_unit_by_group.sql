-- compare: rows
SELECT city, COUNT(DISTINCT patient_id) AS people FROM patients GROUP BY city
