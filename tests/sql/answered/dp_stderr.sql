-- compare: rows
-- ignore: error
SELECT sex, COUNT(*) AS n, DP_STDERR(n) AS error FROM patients GROUP BY sex
