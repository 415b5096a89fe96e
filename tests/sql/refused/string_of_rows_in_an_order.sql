-- code: unsupported_sql
-- says: is not supported
-- works: SELECT LISTAGG(city, ',') WITHIN GROUP (ORDER BY city) FROM (SELECT city FROM patients GROUP BY city HAVING COUNT(*) > 100) AS t
SELECT LISTAGG(city, ',') WITHIN GROUP (ORDER BY city) FROM patients
