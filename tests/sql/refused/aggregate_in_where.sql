-- code: unsupported_sql
-- says: aggregate
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city HAVING COUNT(*) > 3
SELECT city, COUNT(*) FROM patients WHERE COUNT(*) > 3 GROUP BY city
