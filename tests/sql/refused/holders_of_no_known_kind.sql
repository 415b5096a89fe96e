-- code: invalid_target
-- says: holders cannot be most
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(holders => 'any') COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(holders => 'most') COUNT(*) FROM patients
