-- code: invalid_target
-- says: confidence
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence => 0.99) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence => 1) COUNT(*) FROM patients
