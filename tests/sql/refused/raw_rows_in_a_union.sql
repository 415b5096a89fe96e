-- code: unsupported_sql
-- says: private rows
-- works: SELECT city FROM patients GROUP BY city UNION ALL SELECT city FROM cities
SELECT city FROM patients UNION ALL SELECT city FROM cities
