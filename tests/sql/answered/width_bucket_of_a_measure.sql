-- compare: rows
-- duckdb:
--   SELECT CASE WHEN cost < 0 THEN 0 WHEN cost >= 450 THEN 10 ELSE FLOOR(cost / 50.0) + 1 END AS b, COUNT(*) AS n FROM patients GROUP BY 1
SELECT WIDTH_BUCKET(cost, 0, 450, 9) AS b, COUNT(*) AS n FROM patients GROUP BY 1
