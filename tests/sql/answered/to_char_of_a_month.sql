-- compare: rows
-- duckdb:
--   SELECT STRFTIME(admitted, '%Y-%m') AS m, COUNT(*) AS n FROM patients WHERE admitted < DATE '2024-01-15' GROUP BY 1
SELECT TO_CHAR(DATE_TRUNC('month', admitted), 'YYYY-MM') AS m, COUNT(*) AS n FROM patients WHERE admitted < DATE(TIMESTAMP '2024-01-15') GROUP BY 1
