-- code: unsupported_sql
-- says: bmi
-- works: SELECT SUM(CASE WHEN bmi >= 30 THEN 40 WHEN bmi >= 15 THEN 22 ELSE 0 END) FROM patients
SELECT SUM(bmi) FROM patients
