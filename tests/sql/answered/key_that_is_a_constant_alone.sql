-- compare: rows
SELECT 1 AS k, COUNT(*) AS n FROM patients GROUP BY k
