-- code: unsupported_sql
-- says: COUNT(*)
-- works: SELECT SUM(n) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
SELECT SUM(COUNT(*)) FROM patients
