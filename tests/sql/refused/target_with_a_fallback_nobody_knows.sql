-- code: invalid_target
-- says: 'history' gives the best known answer
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model') COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'guess') COUNT(*) FROM patients
