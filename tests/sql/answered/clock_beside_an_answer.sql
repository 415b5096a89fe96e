-- compare: rows
SELECT COUNT(*) AS n, NOW() > TIMESTAMP '2024-01-01' AS later, EXTRACT(year FROM CURRENT_DATE) AS y FROM patients
