-- compare: rows
-- duckdb:
--   SELECT COUNT(*) AS n FROM patients WHERE admitted >= DATE '2024-01-05' AND admitted < TIMESTAMP '2024-01-20 12:00:00'
SELECT COUNT(*) AS n FROM patients WHERE admitted >= TO_DATE('05/01/2024', 'DD/MM/YYYY') AND admitted < TO_TIMESTAMP('2024-01-20 12:00:00', 'YYYY-MM-DD HH24:MI:SS')
