-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE age > (SELECT AVG(age) FROM patients WHERE cost > (SELECT AVG(cost) FROM patients))
