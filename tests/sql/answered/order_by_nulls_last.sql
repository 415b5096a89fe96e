-- compare: ordered
SELECT visits, COUNT(*) AS n FROM patients GROUP BY visits ORDER BY visits DESC NULLS LAST
