-- code: unsupported_sql
-- says: must replace a literal by a literal that is not longer
-- works: SELECT COUNT(*) FROM patients WHERE CASE WHEN sex = 'male' THEN 'm' END = 'm'
SELECT COUNT(*) FROM patients WHERE REPLACE(sex, 'm', 'mmmm') = 'mmmmale'
