-- code: unsupported_sql
-- says: private rows
-- works: SELECT COUNT(*) FROM (SELECT * FROM patients WHERE insured) AS t
SELECT * FROM (SELECT * FROM patients WHERE insured) AS t
