-- code: invalid_target
-- says: must be a day
-- works: SELECT COUNT(*) FROM patients
SET tacit.as_of = 'soon'
