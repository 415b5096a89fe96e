-- code: unsupported_sql
-- says: cannot read patients as well
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients, pg_catalog.pg_class
