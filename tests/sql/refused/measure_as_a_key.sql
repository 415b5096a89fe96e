-- code: unsupported_sql
-- says: cost
-- works: SELECT city, AVG(cost) FROM patients GROUP BY city
SELECT cost, COUNT(*) FROM patients GROUP BY cost
