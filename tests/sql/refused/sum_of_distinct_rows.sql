-- code: unsupported_sql
-- says: takes one column, not several
-- works: SELECT COUNT(DISTINCT (age, visits)) FROM patients
SELECT SUM(DISTINCT (age, visits)) FROM patients
