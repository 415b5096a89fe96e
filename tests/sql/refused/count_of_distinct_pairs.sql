-- code: unsupported_sql
-- says: COUNT(DISTINCT (a, b))
-- works: SELECT COUNT(DISTINCT (city, sex)) FROM patients
SELECT COUNT(DISTINCT city, sex) FROM patients
