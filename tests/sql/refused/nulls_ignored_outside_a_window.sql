-- code: unsupported_sql
-- says: IGNORE NULLS
-- works: SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
SELECT MAX(n) IGNORE NULLS FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
