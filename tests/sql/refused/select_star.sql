-- code: unsupported_sql
-- says: private rows
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT * FROM patients
