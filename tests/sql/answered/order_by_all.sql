-- compare: ordered
SELECT sex, insured, COUNT(*) AS n FROM patients GROUP BY ALL ORDER BY ALL
