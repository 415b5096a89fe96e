-- compare: rows
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM patients GROUP BY 1
