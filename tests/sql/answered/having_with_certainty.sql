-- compare: rows
-- duckdb:
--   SELECT city, COUNT(*) AS n, 0.5 AS dp_certain FROM patients GROUP BY city HAVING COUNT(*) > 300
-- ignore: dp_certain
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(certainty => true) city, COUNT(*) AS n FROM patients GROUP BY city HAVING COUNT(*) > 300
