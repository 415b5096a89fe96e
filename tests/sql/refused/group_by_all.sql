-- code: unsupported_sql
-- says: GROUP BY
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT city, COUNT(*) FROM patients GROUP BY ALL
