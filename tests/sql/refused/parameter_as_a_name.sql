-- code: unsupported_sql
-- says: is not a name
-- works: SELECT COUNT(*) AS n FROM patients
SELECT COUNT(*) AS $1 FROM patients
