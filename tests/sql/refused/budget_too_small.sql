-- code: budget_exhausted
-- says: half_width
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 100) COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.01) SUM(age * visits) FROM patients
