-- code: unsupported_sql
-- says: DP_PROBABILITY is about answers of another SELECT
-- works: SELECT p FROM (SELECT DP_PROBABILITY(COUNT(*) > 300) AS p FROM patients) AS t
SELECT DP_PROBABILITY(n > 300) FROM (SELECT COUNT(*) AS n FROM patients) AS t
