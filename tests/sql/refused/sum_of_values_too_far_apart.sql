-- code: unsupported_sql
-- says: has values of too different sizes to be summed exactly
-- works: SELECT SUM(CASE WHEN insured THEN 0.1 ELSE 100 END) FROM patients
SELECT SUM(CASE WHEN insured THEN 0.0000000000001 ELSE 100000000000 END) FROM patients
