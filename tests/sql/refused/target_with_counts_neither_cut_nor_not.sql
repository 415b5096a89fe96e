-- code: invalid_target
-- says: Write true or false
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(nonnegative_counts => true) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(nonnegative_counts => maybe) COUNT(*) FROM patients
