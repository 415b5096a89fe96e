-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE ROUND(stay) = 4 OR CEIL(stay) = 10
