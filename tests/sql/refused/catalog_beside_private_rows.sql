-- code: unsupported_sql
-- says: cannot be read beside the catalog
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients, pg_catalog.pg_class
