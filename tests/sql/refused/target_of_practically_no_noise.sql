-- code: invalid_target
-- says: noise
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.000001) COUNT(*) FROM patients
