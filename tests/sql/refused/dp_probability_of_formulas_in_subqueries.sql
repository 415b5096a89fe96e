-- code: unsupported_sql
-- says: DP_PROBABILITY compares subqueries of patients, and one of them is a formula
-- works: SELECT DP_PROBABILITY(AVG(age) FILTER (WHERE insured) > AVG(age)) AS p FROM patients
SELECT DP_PROBABILITY((SELECT AVG(age) FROM patients WHERE insured) > (SELECT AVG(age) FROM patients)) AS p
