-- compare: rows
SELECT COUNT(*) FROM patients WHERE age > 60 OR (insured IS NOT TRUE AND sex = 'female')
