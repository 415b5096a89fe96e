-- compare: rows
SELECT admitted + INTERVAL '1 hour' AS k, COUNT(*) AS n FROM patients GROUP BY 1
