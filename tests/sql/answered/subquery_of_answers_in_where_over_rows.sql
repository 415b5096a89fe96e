-- compare: rows
SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)
