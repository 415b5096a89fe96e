-- code: unsupported_sql
-- says: sex is no number
-- works: SELECT COUNT(sex) FROM patients
SELECT SUM(sex) FROM patients
