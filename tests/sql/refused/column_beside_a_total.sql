-- code: unsupported_sql
-- says: neither aggregated nor a group key
-- works: SELECT age, COUNT(*) FROM patients GROUP BY age
SELECT age, COUNT(*) FROM patients
