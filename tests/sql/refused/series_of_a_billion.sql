-- code: too_large
-- says: 1000000000 rows
-- works: SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g
SELECT COUNT(*) AS n FROM generate_series(1, 1000000000) AS g
