-- code: unsupported_sql
-- says: has no rows
-- works: SELECT COUNT(*) AS n FROM unnest(ARRAY[1, 2]) AS u
SELECT COUNT(*) AS n FROM unnest(ARRAY[]::int[]) AS u
