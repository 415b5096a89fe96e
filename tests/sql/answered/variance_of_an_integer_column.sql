-- compare: rows
-- half_width: 400
SELECT VARIANCE(age) AS spread, VAR_SAMP(age) AS same FROM patients
