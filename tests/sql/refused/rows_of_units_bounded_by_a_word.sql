-- code: invalid_target
-- says: rows_per_unit cannot be most
-- works: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 20) SUM(cost) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rows_per_unit => 'most') SUM(cost) FROM patients
