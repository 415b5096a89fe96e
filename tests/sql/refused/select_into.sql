-- code: unsupported_sql
-- says: INTO
-- works: SELECT city, COUNT(*) AS n FROM patients GROUP BY city
SELECT city, COUNT(*) AS n INTO copied FROM patients GROUP BY city
