-- code: unsupported_sql
-- says: COPY
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
COPY patients TO 'stolen.csv'
