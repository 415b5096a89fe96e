-- code: unsupported_sql
-- says: age
-- works: SELECT age * 2 AS twice, COUNT(*) FROM patients GROUP BY twice
SELECT age * 2 FROM patients
