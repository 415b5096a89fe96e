-- code: unsupported_sql
-- says: DP_PROBABILITY(STDDEV(cost) > 30) cannot be decided step by step
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(decide => 0.99) DP_PROBABILITY(AVG(cost) > 30) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(decide => 0.99) DP_PROBABILITY(STDDEV(cost) > 30) FROM patients
