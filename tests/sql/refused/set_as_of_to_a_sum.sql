-- code: invalid_target
-- says: must be one date, or DEFAULT
-- works: SELECT COUNT(*) FROM patients
SET tacit.as_of = 2026 - 10
