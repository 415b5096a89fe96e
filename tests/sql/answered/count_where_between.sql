-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE age BETWEEN 30 AND 49
