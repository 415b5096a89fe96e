-- code: unsupported_sql
-- says: RECURSIVE
-- works: WITH t AS (SELECT COUNT(*) AS n FROM patients) SELECT n FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT SUM(n) FROM t
