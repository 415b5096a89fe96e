-- compare: rows
-- duckdb:
--   SELECT SUM(CASE WHEN visits IS NOT DISTINCT FROM age - 20 THEN 3 END) AS s, SUM(CASE visits WHEN 1 THEN 5 WHEN 2 THEN 7
--   ELSE 0 END) AS t FROM patients
SELECT SUM(DECODE(visits, age - 20, 3)) AS s, SUM(DECODE(visits, 1, 5, 2, 7, 0)) AS t FROM patients
