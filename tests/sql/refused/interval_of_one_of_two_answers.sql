-- code: unsupported_sql
-- says: n
-- works: SELECT COUNT(*) AS n, SUM(visits) AS m, DP_INTERVAL_LOW(n) FROM patients
SELECT COUNT(*) AS n, SUM(visits) AS n, DP_INTERVAL_LOW(n) FROM patients
