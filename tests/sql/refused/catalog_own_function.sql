-- code: unsupported_sql
-- says: is not a supported function in a query of the catalog
-- works: SELECT relname FROM pg_class
SELECT range(1000000000) AS x FROM pg_catalog.pg_class LIMIT 1
