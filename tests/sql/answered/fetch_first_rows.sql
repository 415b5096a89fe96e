-- compare: ordered
-- duckdb:
--   SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY city LIMIT 3
SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY city FETCH FIRST 3 ROWS ONLY
