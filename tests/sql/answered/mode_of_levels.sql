-- compare: rows
-- duckdb:
--   SELECT insured, MODE(city) AS m, MODE(sex) AS s FROM patients GROUP BY insured
SELECT insured, MODE() WITHIN GROUP (ORDER BY city) AS m, MODE(sex) AS s FROM patients GROUP BY insured
