-- compare: rows
-- half_width: 0.5
SELECT city, AVG(CASE WHEN insured THEN 1.0 ELSE 0.0 END) AS share FROM patients GROUP BY city
