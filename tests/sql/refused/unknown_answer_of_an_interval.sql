-- code: unknown_name
-- says: m
-- works: SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) FROM patients
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(m) FROM patients
