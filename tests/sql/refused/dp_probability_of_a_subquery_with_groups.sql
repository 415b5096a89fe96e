-- code: unsupported_sql
-- says: DP_PROBABILITY compares a subquery that is not one answer in one row
-- works: SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients) > 300) AS p
SELECT DP_PROBABILITY((SELECT COUNT(*) FROM patients GROUP BY city) > 300) AS p
