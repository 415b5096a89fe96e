-- code: unsupported_sql
-- says: is not the position of one of the
-- works: SELECT city, COUNT(*) FROM patients GROUP BY 1
SELECT city, COUNT(*) FROM patients GROUP BY 3
