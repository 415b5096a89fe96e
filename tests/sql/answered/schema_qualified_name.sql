-- compare: rows
SELECT COUNT(*) FROM main.patients WHERE patients.sex = 'male'
