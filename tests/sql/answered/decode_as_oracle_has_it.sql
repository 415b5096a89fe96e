-- compare: rows
-- duckdb:
--   SELECT CASE WHEN sex IS NULL THEN 'unknown' WHEN sex = 'female' THEN 'f' ELSE 'other' END AS s, COUNT(*) AS n
--   FROM patients GROUP BY 1
SELECT DECODE(sex, 'female', 'f', NULL, 'unknown', 'other') AS s, COUNT(*) AS n FROM patients GROUP BY 1
