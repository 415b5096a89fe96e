-- code: invalid_target
-- says: options of a test
-- works: SELECT COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.01) COUNT(*) FROM patients
