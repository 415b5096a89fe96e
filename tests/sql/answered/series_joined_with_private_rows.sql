-- compare: rows
-- duckdb:
--   SELECT g, COUNT(*) AS n FROM patients JOIN (SELECT unnest(range(80, 84)) AS g) AS s ON g = age GROUP BY g
SELECT g, COUNT(*) AS n FROM patients JOIN generate_series(83, 80, -1) AS g ON g = age GROUP BY g
