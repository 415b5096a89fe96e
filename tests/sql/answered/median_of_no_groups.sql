-- compare: rows
SELECT city, MEDIAN(visits) AS middle FROM patients WHERE sex NOT IN ('male', NULL) GROUP BY city
