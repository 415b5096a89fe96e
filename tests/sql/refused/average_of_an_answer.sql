-- code: unsupported_sql
-- says: COUNT(*)
-- works: SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
SELECT AVG(COUNT(*)) FROM patients
