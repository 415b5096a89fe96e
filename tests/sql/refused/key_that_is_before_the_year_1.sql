-- code: unsupported_sql
-- says: outside the years
-- works: SELECT admitted - 1000, COUNT(*) FROM patients GROUP BY 1
SELECT admitted - 1000000, COUNT(*) FROM patients GROUP BY 1
