-- code: unsupported_sql
-- says: COUNT(*)
-- works: SELECT n, COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t GROUP BY n
SELECT COUNT(*), COUNT(*) FROM patients GROUP BY COUNT(*)
