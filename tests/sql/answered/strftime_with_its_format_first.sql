-- compare: rows
-- duckdb:
--   SELECT STRFTIME(admitted, '%d') AS d, COUNT(*) AS n FROM patients WHERE admitted < DATE '2024-01-15' GROUP BY 1
SELECT STRFTIME('%d', admitted) AS d, COUNT(*) AS n FROM patients WHERE admitted < DATE '2024-01-15' GROUP BY 1
