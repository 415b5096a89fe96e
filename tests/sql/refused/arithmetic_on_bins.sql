-- code: unsupported_sql
-- says: needs single values of bmi, but only its bins are public
-- works: SELECT COUNT(*) FROM patients WHERE bmi >= 25
SELECT COUNT(*) FROM patients WHERE bmi * 2 > 50
