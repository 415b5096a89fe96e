-- compare: rows
SELECT admitted, AVG(COUNT(*)) OVER (ORDER BY admitted ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM patients GROUP BY admitted
