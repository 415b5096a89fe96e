-- code: unsupported_sql
-- says: in its pattern
-- works: SELECT format('%s.%s', nspname, 1) FROM pg_namespace
SELECT format('%300000000s', nspname) FROM pg_namespace
