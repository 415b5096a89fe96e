-- code: unsupported_sql
-- says: is no function that the catalog computes
-- works: SELECT relname FROM pg_class
SELECT range(1000000000) AS x FROM pg_catalog.pg_class LIMIT 1
