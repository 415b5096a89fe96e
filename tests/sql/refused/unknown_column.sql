-- code: unknown_name
-- says: 'age'
-- works: SELECT AVG(age) FROM patients
SELECT AVG(ages) FROM patients
