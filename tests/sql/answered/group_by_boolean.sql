-- compare: rows
SELECT insured, COUNT(*) AS n FROM patients GROUP BY insured
