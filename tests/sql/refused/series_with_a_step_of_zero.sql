-- code: unsupported_sql
-- says: has a step of zero
-- works: SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g
SELECT COUNT(*) AS n FROM generate_series('2024-01-01'::date, '2024-02-01'::date, '0 days') AS g
