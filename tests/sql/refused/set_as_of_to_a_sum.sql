-- code: invalid_target
-- says: one day
-- works: SELECT COUNT(*) FROM patients
SET tacit.as_of = 2026 - 10
