-- code: unsupported_sql
-- says: makes only one column
-- works: SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g
SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g(a, b)
