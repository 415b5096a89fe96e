-- code: unsupported_sql
-- says: place
-- works: SELECT city, COUNT(*) FROM patients GROUP BY 1
SELECT city, COUNT(*) FROM patients GROUP BY 3
