-- code: unsupported_sql
-- says: needs coefficients of records that differ by more than a factor of 2**40
-- works: SELECT COUNT(*), SUM(age) FROM patients
SELECT 1e20 * COUNT(*) + SUM(age) FROM patients
