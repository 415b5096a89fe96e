-- code: invalid_target
-- says: extremes => 'noisy'
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'noisy') MAX(age) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'exact') MAX(age) FROM patients
