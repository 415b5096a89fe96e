-- code: unsupported_sql
-- says: groups by another answer
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT COUNT(*) FROM patients GROUP BY (SELECT COUNT(*) FROM patients)
