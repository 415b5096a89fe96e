-- code: unsupported_sql
-- says: is not a supported function
-- works: SELECT COUNT(*) AS n FROM patients WHERE sex = 'female'
SELECT COUNT(*) AS n FROM patients WHERE DECODE(sex, 'hex') = 'a'
