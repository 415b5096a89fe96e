-- compare: rows
SELECT EXTRACT(month FROM admitted) AS month, COUNT(*) AS n FROM patients GROUP BY month
