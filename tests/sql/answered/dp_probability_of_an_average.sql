-- compare: rows
-- duckdb:
--   SELECT sex, AVG(age) AS a, 0.5 AS p FROM patients GROUP BY sex
-- ignore: p
SELECT sex, AVG(age) AS a, DP_PROBABILITY(NOT (a < 40 OR a > 60)) AS p FROM patients GROUP BY sex
