-- code: invalid_target
-- says: at_least
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.05, at_least => 500) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(at_least => 500) COUNT(*) FROM patients
