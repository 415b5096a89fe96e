-- code: unsupported_sql
-- says: needs a list of constants
-- works: SELECT COUNT(*) AS n FROM unnest(ARRAY[1, 2]) AS u
SELECT COUNT(*) AS n FROM patients, unnest(ARRAY[age]) AS u
