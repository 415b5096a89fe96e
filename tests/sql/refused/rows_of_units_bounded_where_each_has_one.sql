-- code: invalid_target
-- says: one row for each unit
-- works: SELECT SUM(LEAST(cost, 100)) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rows_per_unit => 4) SUM(cost) FROM patients
