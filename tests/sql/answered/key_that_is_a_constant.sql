-- compare: rows
SELECT 'all' AS k, city, COUNT(*) AS n, 1 AS one FROM patients GROUP BY 1, 2, one
