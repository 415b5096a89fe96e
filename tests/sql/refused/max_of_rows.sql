-- code: unsupported_sql
-- says: extremes => 'noisy'
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'noisy') MAX(age) FROM patients
SELECT MAX(age) FROM patients
