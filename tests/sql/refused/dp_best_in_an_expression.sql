-- code: unsupported_sql
-- says: is part of an expression
-- works: SELECT b / 2 AS half FROM (SELECT DP_BEST(COUNT(*), prior => ((200, 0.5), (300, 0.5))) AS b FROM patients) AS t
SELECT DP_BEST(COUNT(*), prior => ((200, 0.5), (300, 0.5))) / 2 AS half FROM patients
