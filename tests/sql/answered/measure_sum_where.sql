-- compare: rows
-- half_width: 20000
SELECT SUM(cost) AS total, COUNT(*) AS n FROM patients WHERE age >= 65 AND insured
