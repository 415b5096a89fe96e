-- code: unsupported_sql
-- says: DP_INTERVAL_LOW
-- works: SELECT low + 1 FROM (SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM patients) AS t
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) + 1 FROM patients
