-- code: unsupported_sql
-- says: an operator that is not computed
-- works: SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) 'a'
SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.@@) 'a'
