-- code: unsupported_sql
-- says: private rows
-- works: SELECT AVG(cost) FROM patients
SELECT city, cost FROM patients ORDER BY cost DESC LIMIT 5
