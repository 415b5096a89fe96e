-- compare: rows
-- half_width: 100
SELECT city, MEDIAN(visits) AS middle FROM patients GROUP BY city
