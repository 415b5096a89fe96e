-- compare: rows
-- half_width: 50
SELECT STDDEV(visits) AS spread, STDDEV_SAMP(visits) AS same FROM patients
