-- compare: rows
-- half_width: 50
SELECT STDDEV_POP(visits) AS spread FROM patients WHERE sex = 'female'
