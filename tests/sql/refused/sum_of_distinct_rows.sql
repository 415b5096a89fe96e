-- code: unsupported_sql
-- says: of several columns
-- works: SELECT COUNT(DISTINCT (age, visits)) FROM patients
SELECT SUM(DISTINCT (age, visits)) FROM patients
