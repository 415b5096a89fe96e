-- code: unsupported_sql
-- says: cost
-- works: SELECT SUM(cost) FILTER (WHERE insured) FROM patients
SELECT COUNT(*) FILTER (WHERE cost > 100) FROM patients
