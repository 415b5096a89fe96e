-- compare: rows
SELECT insured, COUNT(*) AS n FROM patients GROUP BY insured HAVING PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY admitted) > DATE '2023-11-20'
