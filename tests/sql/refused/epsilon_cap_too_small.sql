-- code: cost_above_cap
-- says: cap
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 100) COUNT(*) FROM patients WHERE age = 31
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 2, epsilon => 0.001) COUNT(*) FROM patients WHERE age = 31
