-- code: invalid_target
-- says: above 0
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 20) SUM(cost) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(unit_sum_max => 0) SUM(cost) FROM patients
