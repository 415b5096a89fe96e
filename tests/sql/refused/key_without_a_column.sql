-- code: unsupported_sql
-- says: groups by no column
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT COUNT(*) FROM patients GROUP BY 'all'
