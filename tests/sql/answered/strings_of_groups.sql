-- compare: rows
-- duckdb:
--   SELECT STRING_AGG(city, ',' ORDER BY city) AS cities, STRING_AGG(city, '; ' ORDER BY city DESC) AS back FROM (SELECT city FROM patients GROUP BY city HAVING COUNT(*) > 250) AS t
SELECT STRING_AGG(city, ',' ORDER BY city) AS cities, LISTAGG(city, '; ') WITHIN GROUP (ORDER BY city DESC) AS back FROM (SELECT city FROM patients GROUP BY city HAVING COUNT(*) > 250) AS t
