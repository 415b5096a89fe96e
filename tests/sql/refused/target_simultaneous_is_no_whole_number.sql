-- code: invalid_target
-- says: whole number
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(simultaneous => 3) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(simultaneous => 2.5) COUNT(*) FROM patients
