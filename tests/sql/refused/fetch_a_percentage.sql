-- code: unsupported_sql
-- says: FETCH
-- works: SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n LIMIT 2
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n FETCH FIRST 10 PERCENT ROWS ONLY
