-- compare: rows
SELECT sex, insured, COUNT(*) FROM patients GROUP BY 1, 2
