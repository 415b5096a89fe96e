-- compare: rows
SELECT COUNT(*) AS n FROM patients GROUP BY sex
