-- compare: rows
SELECT cost, COUNT(*) AS n FROM patients GROUP BY cost
