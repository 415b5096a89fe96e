-- compare: ordered
-- duckdb:
--   SELECT CAST(d AS DATE) AS d, COALESCE(n, 0) AS n FROM (SELECT unnest(generate_series(TIMESTAMP '2023-10-01', TIMESTAMP '2024-04-30',
--   INTERVAL '1 month')) AS d) AS s LEFT JOIN (SELECT DATE_TRUNC('month', admitted) AS m, COUNT(*) AS n FROM patients GROUP BY 1) AS x
--   ON x.m = d ORDER BY 1
SELECT d::date, COALESCE(n, 0) AS n FROM generate_series('2023-10-01'::date, '2024-04-30', '1 month') AS d LEFT JOIN (SELECT date_trunc('month', admitted) AS m, COUNT(*) AS n FROM patients GROUP BY 1) AS x ON x.m = d ORDER BY 1
