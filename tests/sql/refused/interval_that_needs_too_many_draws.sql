-- code: too_large
-- says: needs more random draws at confidence 0.999999
-- works: SELECT AVG(age) AS a, DP_INTERVAL_LOW(a, 0.999) FROM patients
SELECT AVG(age) AS a, DP_INTERVAL_LOW(a, 0.999999) FROM patients
