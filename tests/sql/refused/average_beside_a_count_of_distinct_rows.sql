-- code: unsupported_sql
-- says: stands beside a count of those with records
-- works: SELECT COUNT(DISTINCT age), SUM(DISTINCT age) FROM patients
SELECT COUNT(*), AVG(age) FROM (SELECT DISTINCT age FROM patients) AS t
