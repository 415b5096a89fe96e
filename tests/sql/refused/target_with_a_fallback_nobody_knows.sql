-- code: invalid_target
-- says: fallback => 'model'
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model') COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'guess') COUNT(*) FROM patients
