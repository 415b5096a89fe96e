-- compare: rows
-- half_width: 20
SELECT AVG(age + 2 * visits) FILTER (WHERE insured) AS burden FROM patients
