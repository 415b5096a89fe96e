-- code: unsupported_sql
-- says: one
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients; SELECT COUNT(*) FROM patients WHERE insured
