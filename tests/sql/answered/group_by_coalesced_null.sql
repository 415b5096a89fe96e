-- compare: rows
SELECT COALESCE(sex, 'unknown') AS sex, COUNT(*) AS n FROM patients GROUP BY COALESCE(sex, 'unknown')
