-- compare: rows
SELECT visits, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY visits) AS change FROM patients WHERE visits <= 6 GROUP BY visits
