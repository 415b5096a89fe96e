-- code: invalid_target
-- says: must be a date, not
-- works: SELECT COUNT(*) FROM patients
SET tacit.as_of = 'soon'
