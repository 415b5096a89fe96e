-- compare: rows
SELECT sex, SUM(COUNT(*) + 1) OVER () AS t FROM patients GROUP BY sex
