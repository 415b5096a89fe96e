-- code: unsupported_sql
-- says: next to a * or in a SELECT DISTINCT
-- works: WITH a AS (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) SELECT sex, n, DP_INTERVAL_LOW(n) AS low FROM a
WITH a AS (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) SELECT *, DP_INTERVAL_LOW(n) AS low FROM a
