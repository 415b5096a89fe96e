-- code: unsupported_sql
-- says: pattern
-- works: SELECT CAST(age AS VARCHAR) AS a, COUNT(*) FROM patients GROUP BY 1
SELECT TO_CHAR(age, 'FM99V9') AS a, COUNT(*) FROM patients GROUP BY 1
