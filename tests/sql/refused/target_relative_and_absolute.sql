-- code: invalid_target
-- says: relative
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.05, at_least => 500) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.05, half_width => 20) COUNT(*) FROM patients
