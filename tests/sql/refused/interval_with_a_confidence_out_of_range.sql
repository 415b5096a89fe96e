-- code: unsupported_sql
-- says: confidence
-- works: SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 0.9) FROM patients
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 2) FROM patients
