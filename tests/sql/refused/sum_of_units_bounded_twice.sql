-- code: invalid_target
-- says: both bound a sum
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rows_per_unit => 'auto') SUM(cost) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rows_per_unit => 'auto', unit_sum_max => 500) SUM(cost) FROM patients
