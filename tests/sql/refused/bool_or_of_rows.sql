-- code: unsupported_sql
-- says: insured
-- works: SELECT COUNT(*) FILTER (WHERE insured) FROM patients
SELECT BOOL_OR(insured) FROM patients
