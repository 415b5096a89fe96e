-- compare: rows
SELECT COUNT(*) AS n FROM (SELECT * FROM patients WHERE insured) AS t WHERE age > 40
