-- code: invalid_target
-- says: relative
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.05, at_least => 500) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 5) COUNT(*) FROM patients
