-- compare: rows
SELECT EXTRACT(month FROM AGE(DATE '2024-03-01', admitted)) AS months, COUNT(*) AS n FROM patients GROUP BY 1
