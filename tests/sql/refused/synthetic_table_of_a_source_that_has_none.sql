-- code: unknown_name
-- says: patients has no synthetic table nobody
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients.nobody
