-- code: invalid_target
-- says: one row for each unit
-- works: SELECT SUM(LEAST(cost, 100)) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(unit_sum_max => 500) SUM(cost) FROM patients
