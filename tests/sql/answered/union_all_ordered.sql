-- compare: ordered
SELECT city AS what, COUNT(*) AS n FROM patients GROUP BY city UNION ALL SELECT 'all', COUNT(*) FROM patients ORDER BY n DESC, what
