-- code: unsupported_sql
-- says: more of bmi than its bins
-- works: SELECT COUNT(*) FROM patients WHERE bmi >= 25 AND age > 25
SELECT COUNT(*) FROM patients WHERE bmi > age
