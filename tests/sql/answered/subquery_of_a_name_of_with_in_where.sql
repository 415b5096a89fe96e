-- compare: rows
WITH m AS (SELECT AVG(age) AS a FROM patients WHERE sex = 'female') SELECT COUNT(*) AS n FROM patients WHERE age > (SELECT a FROM m)
