-- compare: rows
SELECT admitted, COUNT(*) AS n FROM patients GROUP BY admitted
