-- code: unsupported_sql
-- says: ties
-- works: SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n LIMIT 2
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n FETCH FIRST 2 ROWS WITH TIES
