-- code: unsupported_sql
-- says: has an unsupported operator
-- works: SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) 'a'
SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.@@) 'a'
