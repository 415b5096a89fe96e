-- compare: rows
SELECT FLOOR(stay / 2) AS b, COUNT(*) AS n FROM patients WHERE stay IS NOT NULL GROUP BY FLOOR(stay / 2)
