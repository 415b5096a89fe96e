-- code: unsupported_sql
-- says: no longer
-- works: SELECT COUNT(*) FROM patients WHERE CASE WHEN sex = 'male' THEN 'm' END = 'm'
SELECT COUNT(*) FROM patients WHERE REPLACE(sex, 'm', 'mmmm') = 'mmmmale'
