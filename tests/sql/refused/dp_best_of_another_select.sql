-- code: unsupported_sql
-- says: DP_BEST is about answers of another SELECT
-- works: SELECT b FROM (SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients) AS t
SELECT DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM (SELECT COUNT(*) AS n FROM patients) AS t
