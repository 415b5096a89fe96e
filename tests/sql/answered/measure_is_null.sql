-- compare: rows
SELECT stay IS NULL AS unknown, COUNT(*) AS n FROM patients GROUP BY stay IS NULL
