-- code: unsupported_sql
-- says: needs constant ends and a constant step
-- works: SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g
SELECT COUNT(*) AS n FROM generate_series(1, (SELECT COUNT(*) FROM patients)) AS g
