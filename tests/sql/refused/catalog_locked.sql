-- code: unsupported_sql
-- says: is not supported in a query of the catalog
-- works: SELECT relname FROM pg_class
SELECT relname FROM pg_class FOR UPDATE
