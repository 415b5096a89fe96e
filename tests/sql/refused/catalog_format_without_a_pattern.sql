-- code: unsupported_sql
-- says: needs a literal pattern
-- works: SELECT format('%s', relname) FROM pg_class
SELECT format(relname, 1) FROM pg_class
