-- code: too_large
-- says: makes more than 10000 numbers
-- works: SELECT n FROM generate_series(1, 32) AS s(n), pg_class
SELECT n FROM generate_series(1, 1000000000) AS s(n), pg_class
