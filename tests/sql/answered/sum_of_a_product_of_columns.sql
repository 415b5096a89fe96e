-- compare: rows
-- half_width: 20000
SELECT SUM(age * visits) AS total FROM patients WHERE insured
