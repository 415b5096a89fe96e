-- code: unsupported_sql
-- says: SELECT
-- works: SELECT 1 + 2
(1 + 2)
