-- code: unsupported_sql
-- says: bmi
-- works: SELECT COUNT(*) FROM patients WHERE bmi >= 25
SELECT COUNT(*) FROM patients WHERE bmi >= 27
