-- compare: rows
SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex
