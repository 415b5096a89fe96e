-- code: unsupported_sql
-- says: counts values, not records
-- works: SELECT COUNT(DISTINCT CONCAT(city, sex)) FROM patients
SELECT COUNT(DISTINCT city, sex) FROM patients
