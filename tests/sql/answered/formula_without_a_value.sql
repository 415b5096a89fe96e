-- compare: rows
-- duckdb:
--   SELECT CAST(NULL AS DOUBLE) AS logarithm, CAST(NULL AS DOUBLE) AS power
SELECT LN(COUNT(*) - 100000) AS logarithm, EXP(COUNT(*)) AS power FROM patients
