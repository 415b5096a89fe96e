-- compare: rows
-- half_width: 1000
SELECT STDDEV(cost) AS spread FROM patients
