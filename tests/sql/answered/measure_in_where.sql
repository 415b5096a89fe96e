-- compare: rows
SELECT sex, COUNT(*) AS n, SUM(cost) AS costs FROM patients WHERE cost > 100 GROUP BY sex
