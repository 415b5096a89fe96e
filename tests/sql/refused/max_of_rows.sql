-- code: unsupported_sql
-- says: MAX(age)
-- works: SELECT PERCENTILE_DISC(0.99) WITHIN GROUP (ORDER BY age) FROM patients
SELECT MAX(age) FROM patients
