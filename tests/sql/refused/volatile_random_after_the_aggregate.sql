-- code: unsupported_sql
-- says: RANDOM()
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city ORDER BY city
SELECT city, COUNT(*) FROM patients GROUP BY city ORDER BY RANDOM()
