-- code: unsupported_sql
-- says: compares no noisy answer
-- works: SELECT DP_PROBABILITY(COUNT(*) > 3) FROM patients
SELECT COUNT(*), DP_PROBABILITY(5 > 3) FROM patients
