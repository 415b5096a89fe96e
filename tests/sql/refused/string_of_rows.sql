-- code: unsupported_sql
-- says: STRING_AGG
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT STRING_AGG(city, ',') FROM patients
