-- code: invalid_target
-- says: number
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 'narrow') COUNT(*) FROM patients
