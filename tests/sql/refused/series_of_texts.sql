-- code: unsupported_sql
-- says: needs exact numbers, dates or timestamps
-- works: SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g
SELECT COUNT(*) AS n FROM generate_series('a', 'b') AS g
