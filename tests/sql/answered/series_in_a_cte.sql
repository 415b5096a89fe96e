-- compare: rows
-- duckdb:
--   SELECT a, n FROM (SELECT unnest(range(88, 95)) AS a) AS s LEFT JOIN (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) AS x ON a = age
WITH ages AS (SELECT generate_series(88, 94) AS a) SELECT a, n FROM ages LEFT JOIN (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) AS x ON a = age
