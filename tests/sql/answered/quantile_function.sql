-- compare: rows
-- half_width: 100
-- duckdb:
--   SELECT QUANTILE_DISC(visits, 0.75) AS upper FROM patients
SELECT QUANTILE(visits, 0.75) AS upper FROM patients
