-- code: unsupported_sql
-- says: has dates but no step
-- works: SELECT COUNT(*) AS n FROM generate_series('2024-01-01'::date, '2024-02-01'::date, '1 day') AS g
SELECT COUNT(*) AS n FROM generate_series('2024-01-01'::date, '2024-02-01'::date) AS g
