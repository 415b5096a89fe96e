-- compare: rows
SELECT city, CASE WHEN COUNT(*) > 380 THEN 'large' ELSE 'small' END AS size FROM patients GROUP BY city
