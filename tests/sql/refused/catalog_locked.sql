-- code: unsupported_sql
-- says: is not answered
-- works: SELECT relname FROM pg_class
SELECT relname FROM pg_class FOR UPDATE
