-- compare: rows
-- half_width: 30000
SELECT VAR_POP(cost) AS population, VAR_SAMP(cost) AS sample FROM patients
