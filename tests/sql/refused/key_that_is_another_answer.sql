-- code: unsupported_sql
-- says: answer
-- works: SELECT n, COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t GROUP BY n
SELECT COUNT(*) AS n FROM patients GROUP BY n
