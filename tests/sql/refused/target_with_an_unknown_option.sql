-- code: invalid_target
-- says: half_width
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(halfwidth => 10) COUNT(*) FROM patients
