-- code: unsupported_sql
-- says: cannot be read as of an earlier time
-- works: WITH p AS (SELECT * FROM patients) SELECT COUNT(*) FROM p
WITH p AS (SELECT * FROM patients) SELECT COUNT(*) FROM p AS OF '2024-01-01'
