-- code: invalid_target
-- says: decide must be a probability from 0.6 to below 1
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(decide => 0.9) DP_PROBABILITY(COUNT(*) > 30) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(decide => 0.5) DP_PROBABILITY(COUNT(*) > 30) FROM patients
