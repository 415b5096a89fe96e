-- compare: ordered
-- duckdb:
--   SELECT STRFTIME(m, '%b %Y') AS month, n FROM (SELECT DATE_TRUNC('month', admitted) AS m, COUNT(*) AS n FROM patients GROUP BY 1) t ORDER BY m
SELECT TO_CHAR(m, 'Mon YYYY') AS month, n FROM (SELECT DATE_TRUNC('month', admitted) AS m, COUNT(*) AS n FROM patients GROUP BY 1) t ORDER BY m
