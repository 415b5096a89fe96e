-- compare: ordered
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', admitted)) AS so_far FROM patients GROUP BY 1 ORDER BY 1
