-- code: invalid_target
-- says: twice
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10, half_width => 20) COUNT(*) FROM patients
