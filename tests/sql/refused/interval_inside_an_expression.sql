-- code: unsupported_sql
-- says: DP_INTERVAL_LOW
-- works: SELECT n, low FROM (SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM patients) AS t
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(COUNT(*)) FROM patients
