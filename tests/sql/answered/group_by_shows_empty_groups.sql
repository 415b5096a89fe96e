-- compare: rows
-- duckdb:
--   SELECT keys.admitted, keys.visits, COUNT(patient_id) AS n
--   FROM (SELECT * FROM (SELECT DISTINCT admitted FROM patients),
--                       (SELECT DISTINCT visits FROM patients)) AS keys
--   LEFT JOIN patients ON patients.admitted = keys.admitted
--                     AND patients.visits IS NOT DISTINCT FROM keys.visits
--   GROUP BY ALL
SELECT admitted, visits, COUNT(*) AS n FROM patients GROUP BY admitted, visits
