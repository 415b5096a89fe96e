-- compare: ordered
-- duckdb:
--   SELECT visits, COUNT(*) AS n FROM patients GROUP BY visits ORDER BY visits DESC NULLS FIRST
SELECT visits, COUNT(*) AS n FROM patients GROUP BY visits ORDER BY visits DESC
