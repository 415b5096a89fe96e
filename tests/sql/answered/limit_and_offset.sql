-- compare: ordered
SELECT visits, COUNT(*) AS n FROM patients WHERE visits IS NOT NULL GROUP BY visits ORDER BY visits LIMIT 4 OFFSET 3
