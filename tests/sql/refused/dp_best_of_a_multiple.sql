-- code: unsupported_sql
-- says: is not about a count
-- works: SELECT COUNT(*) AS n, DP_BEST(n, prior => ((200, 0.5), (300, 0.5))) AS b FROM patients
SELECT DP_BEST(2 * COUNT(*), prior => ((40, 1))) AS b FROM patients
