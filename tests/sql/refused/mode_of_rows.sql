-- code: unsupported_sql
-- says: MODE
-- works: SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 1
SELECT MODE() WITHIN GROUP (ORDER BY city) FROM patients
