-- compare: ordered
SELECT month, SUM(n) OVER (ORDER BY month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far FROM (SELECT EXTRACT(month FROM admitted) AS month, COUNT(*) AS n FROM patients GROUP BY 1) AS t ORDER BY month
