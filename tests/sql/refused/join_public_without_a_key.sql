-- code: unsupported_sql
-- says: key
-- works: SELECT day, COUNT(*) FROM holidays GROUP BY day
SELECT COUNT(*) FROM patients AS p JOIN holidays AS h ON p.admitted = h.day
