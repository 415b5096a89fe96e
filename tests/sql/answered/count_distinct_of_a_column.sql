-- compare: rows
-- duckdb:
--   SELECT COUNT(DISTINCT city) AS n, COUNT(DISTINCT sex) AS sexes, COUNT(DISTINCT city) FILTER (WHERE sex = 'female') AS of_women, COUNT(DISTINCT patient_id) AS patients FROM patients
SELECT COUNT(DISTINCT city) AS n, APPROX_COUNT_DISTINCT(sex) AS sexes, COUNT(DISTINCT city) FILTER (WHERE sex = 'female') AS of_women, APPROX_COUNT_DISTINCT(patient_id) AS patients FROM patients
