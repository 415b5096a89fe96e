-- compare: rows
-- half_width: 100
SELECT MEDIAN(age) AS middle FROM patients
