-- code: invalid_target
-- says: guess is not a way to compute posteriors
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(posterior => 'convolution') COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(posterior => 'guess') COUNT(*) FROM patients
