-- code: unsupported_sql
-- says: limits that are numbers in increasing order
-- works: SELECT WIDTH_BUCKET(age, 0, 100, 10) AS b, COUNT(*) FROM patients GROUP BY 1
SELECT WIDTH_BUCKET(age, 100, 0, 10) AS b, COUNT(*) FROM patients GROUP BY 1
