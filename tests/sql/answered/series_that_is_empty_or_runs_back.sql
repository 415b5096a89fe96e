-- compare: ordered
-- duckdb:
--   SELECT * FROM (VALUES (1, 3.0), (2, 1.75), (3, 0.5)) AS v(k, g)
SELECT ROW_NUMBER() OVER (ORDER BY g DESC) AS k, g FROM generate_series(3.0, 0.0, -1.25) AS s(g) UNION ALL SELECT e, 0.0 FROM generate_series(3, 1) AS e
