-- code: unknown_name
-- says: n
-- works: SELECT low FROM (SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM patients) AS t
SELECT n, DP_INTERVAL_LOW(n) FROM (SELECT 1 AS n) AS t
