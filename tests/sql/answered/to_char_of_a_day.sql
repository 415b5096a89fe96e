-- compare: rows
-- duckdb:
--   SELECT RPAD(DAYNAME(admitted), 9, ' ') AS d, COUNT(*) AS n FROM patients GROUP BY 1
SELECT TO_CHAR(admitted, 'Day') AS d, COUNT(*) AS n FROM patients GROUP BY 1
