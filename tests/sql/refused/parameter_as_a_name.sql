-- code: unsupported_sql
-- says: is no name
-- works: SELECT COUNT(*) AS n FROM patients
SELECT COUNT(*) AS $1 FROM patients
