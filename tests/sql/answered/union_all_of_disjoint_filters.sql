-- compare: rows
SELECT 'young' AS class, COUNT(*) AS n FROM patients WHERE age < 40 UNION ALL SELECT 'old', COUNT(*) FROM patients WHERE age >= 40
