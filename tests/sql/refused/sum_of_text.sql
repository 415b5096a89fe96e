-- code: unsupported_sql
-- says: sex is a VARCHAR, and a number is needed
-- works: SELECT COUNT(sex) FROM patients
SELECT SUM(sex) FROM patients
