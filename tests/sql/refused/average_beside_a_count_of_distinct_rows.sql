-- code: unsupported_sql
-- says: next to a count of groups that have records
-- works: SELECT COUNT(DISTINCT age), SUM(DISTINCT age) FROM patients
SELECT COUNT(*), AVG(age) FROM (SELECT DISTINCT age FROM patients) AS t
