-- code: unsupported_sql
-- says: is not a supported function in a query of the catalog
-- works: SELECT relname FROM pg_class
SELECT pg_read_file(relname) FROM pg_class
