-- code: unsupported_sql
-- says: is no function that the catalog computes
-- works: SELECT relname FROM pg_class
SELECT pg_read_file(relname) FROM pg_class
