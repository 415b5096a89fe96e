-- code: unsupported_sql
-- says: needs constants for its ends
-- works: SELECT COUNT(*) AS n FROM generate_series(1, 10) AS g
SELECT COUNT(*) AS n FROM generate_series(1, (SELECT COUNT(*) FROM patients)) AS g
