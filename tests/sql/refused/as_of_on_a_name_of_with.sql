-- code: unsupported_sql
-- says: does not change over time
-- works: WITH p AS (SELECT * FROM patients) SELECT COUNT(*) FROM p
WITH p AS (SELECT * FROM patients) SELECT COUNT(*) FROM p AS OF '2024-01-01'
