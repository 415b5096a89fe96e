-- code: unsupported_sql
-- says: FILTER
-- works: SELECT COUNT(*) FILTER (WHERE city = 'Oslo') AS oslo FROM patients
SELECT * FROM patients PIVOT (COUNT(*) FOR city IN ('Oslo', 'Rome'))
